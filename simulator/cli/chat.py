"""longspan ask without a run: chat with an agent."""

from __future__ import annotations

import re
from datetime import timedelta

from longspan.simulator.base.terminal import prompt_user, say

__all__ = ["chat"]


def chat(agent: str) -> None:
    """Chat with an agent.

    "+90m", "+2h" or "+1d" advances virtual time. An empty line or Ctrl-D exits.
    """
    import trio

    from longspan.simulator.base.clock import DEFAULT_PACE, DEFAULT_START, VirtualClock
    from longspan.simulator.base.errors import InputError
    from longspan.simulator.contract.agent import close_agent
    from longspan.simulator.contract.messages import Message
    from longspan.simulator.play.live_agent import LiveAgent
    from longspan.simulator.suite.agent_spec import AgentSpec, make_agent, pin_defaults
    from longspan.simulator.terminal.console import Console

    console = Console()
    spec = pin_defaults(AgentSpec.parse(agent))
    if spec.kind == "oracle":
        raise InputError("oracle takes its replies from a test, and a chat has no test; choose another agent")
    chat_agent = make_agent(spec)
    live = LiveAgent(chat_agent)
    clock = VirtualClock(DEFAULT_START, DEFAULT_PACE)

    async def talk() -> None:
        try:
            await converse()
        finally:
            await close_agent(chat_agent)

    async def converse() -> None:
        turn = 0
        while line := (await trio.to_thread.run_sync(_ask, f"{clock.now:%a %H:%M}", abandon_on_cancel=True)).strip():
            passed = _parse_wait(line)
            if passed is None and re.fullmatch(r"\+\d+\S*", line):
                console.say("to advance virtual time, type +90m, +2h or +1d", "yellow")
                continue
            if passed is not None:
                clock.jump(clock.now + passed)
                continue
            reply, _ = await live.reply(Message(line, clock.now, f"chat/{turn}"), "")
            console.print(reply.text, style="cyan", soft_wrap=True)
            clock.tick()
            turn += 1

    trio.run(talk)


def _ask(prompt: str) -> str:
    try:
        return prompt_user(f"[{prompt}] you:")
    except EOFError:
        say()  # ends the line of the prompt
        return ""


def _parse_wait(line: str) -> timedelta | None:
    """Return the time that a line such as `+90m`, `+2h` or `+1d` stands for, or None for any other line."""
    match = re.fullmatch(r"\+(\d{1,4})([mhd])", line)
    return timedelta(minutes=int(match[1]) * {"m": 1, "h": 60, "d": 1440}[match[2]]) if match else None
