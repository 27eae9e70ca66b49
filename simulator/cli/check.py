"""longspan check: whether an agent is fit for a long run."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["check"]

MARKS = {"good": ("ok", "green"), "note": ("note", "yellow"), "bad": ("BAD", "bold red")}


def check(agent: Annotated[str, typer.Option(help="Who is checked: KIND/MODEL?option=value&...", metavar="SPEC")] = "notebook") -> int:
    """Tell within a minute whether an agent is fit for a long run.

    Tries replies, observe, reset, snapshots, a repeated turn id, a 20k-token message and virtual time, and tells what
    resuming and filler will cost.
    """
    import trio
    from rich.console import Console
    from rich.text import Text

    from longspan.simulator.agent_spec import AgentSpec
    from longspan.simulator.tools.checkup import checkup

    console = Console()
    spec = AgentSpec.parse(agent)

    async def run() -> bool:
        fit = True
        async for finding in checkup(spec):
            mark, style = MARKS[finding.verdict]
            console.print(Text.assemble((f"{mark:5}", style), f"{finding.trial:18}", finding.what), soft_wrap=True, highlight=False)
            fit = fit and finding.verdict != "bad"
        console.print("fit for a long run" if fit else "not fit for a long run: mend what is marked BAD")
        return fit

    return 0 if trio.run(run) else 1
