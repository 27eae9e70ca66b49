"""longspan check: check whether an agent is ready for a long run."""

from __future__ import annotations

from longspan.simulator.cli.options import SpecOption

__all__ = ["check"]

MARKS = {"good": ("ok", "green"), "note": ("note", "yellow"), "bad": ("BAD", "bold red")}


def check(
    agent: SpecOption = "notebook",
) -> int:
    """Check whether an agent is ready for a long run.

    Tries replies, observe, reset, snapshots, a repeated turn id, a message of 20k tokens and virtual time, and shows what
    resuming and filler will cost. Takes less than a minute.
    """
    import trio

    from longspan.simulator.agent_spec import AgentSpec
    from longspan.simulator.cli.console import Console
    from longspan.simulator.tools.checkup import checkup

    console = Console()
    spec = AgentSpec.parse(agent)

    async def run() -> bool:
        ready = True
        async for finding in checkup(spec):
            mark, style = MARKS[finding.verdict]
            console.say(f"{finding.check:18}{finding.what}", mark=f"{mark:5}", mark_style=style)
            ready = ready and finding.verdict != "bad"
        console.say("ready for a long run" if ready else "not ready for a long run: fix what is marked BAD")
        return ready

    return 0 if trio.run(run) else 1
