"""Agents that are made while runs are planned, and then played with, so that a user's class is constructed once."""

from __future__ import annotations

from threading import Thread, get_ident
from types import TracebackType
from typing import NamedTuple, Self, final

import trio

from longspan.simulator.contract.agent import Agent, close_agent, is_bound_to_its_thread
from longspan.simulator.subject.purse import Purse
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent

__all__ = ["PreparedAgents"]


@final
class _Prepared(NamedTuple):
    """An agent, the purse that its providers belong to, and the thread in which it was made."""

    agent: Agent
    purse: Purse
    thread: int


@final
class PreparedAgents:
    """An agent for each spec that is planned for. The first conversation with that spec is played with it; the others make their own.

    Leaving the context closes the agents that were not needed.
    """

    def __init__(self) -> None:
        self._made: dict[str, _Prepared] = {}

    def inspect(self, spec: AgentSpec) -> Agent:
        """Return the agent of a spec, to ask what it is able to do. Raises as `make_agent` does."""
        if (known := self._made.get(_key(spec))) is not None:
            return known.agent
        purse = Purse()
        with purse.pay_in_context():  # whoever plays with the agent pays from this purse, which gets the run's ledger and record then
            agent = make_agent(spec)
        self._made[_key(spec)] = _Prepared(agent, purse, get_ident())
        return agent

    def take(self, spec: AgentSpec) -> tuple[Agent, Purse] | None:
        """Hand over the agent of a spec, which the caller closes. Return None if there is none, or none for this thread."""
        known = self._made.get(_key(spec))
        if known is None or (known.thread != get_ident() and is_bound_to_its_thread(known.agent)):
            return None
        del self._made[_key(spec)]
        return known.agent, known.purse

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        left, self._made = list(self._made.values()), {}
        if left:
            # in a thread, since the caller may or may not be in Trio
            closing = Thread(target=trio.run, args=(_close_all, [each.agent for each in left]), name="longspan: closing agents")
            closing.start()
            closing.join()


async def _close_all(agents: list[Agent]) -> None:
    for agent in agents:
        await close_agent(agent)


def _key(spec: AgentSpec) -> str:
    """Return what distinguishes specs: two may have the same text and differ in an option that a run sets."""
    return f"{spec} {sorted(spec.options.items())}"
