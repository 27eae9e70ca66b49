"""longspan check: check whether an agent is ready for a long run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longspan.simulator.base.terminal import say_json
from longspan.simulator.cli.options import JsonOption, SpecOption

if TYPE_CHECKING:
    from longspan.simulator.cli.outputs import Checked, CheckedFinding

__all__ = ["check"]

MARKS = {"good": ("ok", "green"), "note": ("note", "yellow"), "bad": ("BAD", "bold red")}


def check(
    agent: SpecOption = "notebook",
    json_: JsonOption = False,
) -> int:
    """Check whether an agent is ready for a long run.

    Tests replies, observe, reset, snapshots, a repeated turn id, virtual time, and messages as long as those in suites. Shows what resuming
    and filler will cost. Takes less than a minute.
    """
    import trio

    from longspan.simulator.running.preflight.checkup import check_agent
    from longspan.simulator.suite.agent_spec import AgentSpec, pin_defaults
    from longspan.simulator.terminal.console import Console

    console = Console()
    spec = pin_defaults(AgentSpec.parse(agent))
    findings: list[CheckedFinding] = []

    async def run() -> bool:
        ready = True
        async for finding in check_agent(spec):
            ready = ready and finding.verdict != "bad"
            findings.append({"check": finding.check, "verdict": finding.verdict, "what": finding.what})
            if not json_:
                mark, style = MARKS[finding.verdict]
                console.say(f"{finding.check:18}{finding.what}", mark=f"{mark:5}", mark_style=style)
        if json_:
            checked: Checked = {"agent": str(spec), "ready": ready, "findings": findings}
            say_json(checked)
        else:
            console.say("ready for a long run" if ready else "not ready for a long run: fix the lines marked BAD")
        return ready

    return 0 if trio.run(run) else 1
