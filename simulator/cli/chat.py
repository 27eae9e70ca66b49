"""longspan chat: talk to an agent by hand."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated

import typer

__all__ = ["chat"]


def chat(agent: Annotated[str, typer.Option(help="Agent to talk to: KIND/MODEL?option=value&...", metavar="SPEC")] = "notebook") -> None:
    """Talk to an agent by hand.

    An empty line or Ctrl-D ends it; "+90m", "+2h" or "+1d" lets so much virtual time pass.
    """
    import trio
    from rich.console import Console

    from longspan.simulator.agent import close
    from longspan.simulator.agent_spec import AgentSpec, make_agent
    from longspan.simulator.clock import DEFAULT_PACE, DEFAULT_START, VirtualClock
    from longspan.simulator.errors import InputError
    from longspan.simulator.messages import Message

    console = Console()
    spec = AgentSpec.parse(agent)
    if spec.kind == "oracle":
        raise InputError("oracle is told what to reply by a test, and in a chat there is none; name another agent")
    made = make_agent(spec)
    clock = VirtualClock(DEFAULT_START, DEFAULT_PACE)

    async def talk() -> None:
        try:
            await converse()
        finally:
            await close(made)

    async def converse() -> None:
        turn = 0
        while line := (await trio.to_thread.run_sync(_ask, f"{clock.now:%a %H:%M}", abandon_on_cancel=True)).strip():
            passed = _passed(line)
            if passed is None and re.fullmatch(r"\+\d+\S*", line):
                console.print("time passes by +90m, +2h or +1d", style="yellow", highlight=False)
                continue
            if passed is not None:
                clock.jump(clock.now + passed)
                continue
            reply = await made.reply(Message(line, clock.now, f"chat/{turn}"))
            console.print(reply.text, style="cyan", markup=False, highlight=False, soft_wrap=True)
            clock.tick()
            turn += 1

    trio.run(talk)


def _ask(prompt: str) -> str:
    try:
        return input(f"[{prompt}] you: ")
    except EOFError:
        print()  # the prompt stands there
        return ""


def _passed(line: str) -> timedelta | None:
    """The virtual time that a line such as `+90m`, `+2h` or `+1d` lets pass; None for anything else."""
    match = re.fullmatch(r"\+(\d{1,4})([mhd])", line)
    return timedelta(minutes=int(match[1]) * {"m": 1, "h": 60, "d": 1440}[match[2]]) if match else None
