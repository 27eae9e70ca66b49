"""The agent of a conversation being played: asked and priced, restored and shown what it missed, saved."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import astuple, replace
from typing import TypeVar, final

from longspan.simulator.agent import Agent, has_snapshots, repeatable
from longspan.simulator.errors import AgentError, LongspanError, journal_text
from longspan.simulator.ledger import Costs, Ledger, models_of, used_by
from longspan.simulator.messages import Message, Reply, Usage
from longspan.simulator.snapshots import Snapshots

__all__ = ["LiveAgent"]

T = TypeVar("T")


@final
class LiveAgent:
    """Stands between a conversation and its agent. Every turn passes through `replay`, `observe` or `reply`.

    Replayed turns are kept until the agent is needed: `catch_up` then restores it from its newest snapshot and shows it the
    rest. Whatever the agent raises becomes an AgentError that names the turn.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        snapshots: Snapshots | None = None,
        ledger: Ledger | None = None,
        give_ideal: Callable[[str], None] | None = None,
    ) -> None:
        self._agent = agent
        self._snapshots = snapshots
        self._ledger = ledger or Ledger()
        self._give_ideal = give_ideal
        self._turns = 0
        self._replayed: list[tuple[Message, str]] = []
        self._caught_up = False

    @property
    def repeatable(self) -> bool:
        """Whether it does no harm to ask the agent the same turn twice."""
        return repeatable(self._agent)

    def replay(self, message: Message, reply: str) -> None:
        """Count a turn that the journal already holds."""
        self._replayed.append((message, reply))
        self._turns += 1

    async def catch_up(self) -> None:
        """Bring the agent to where the journal ended. Does nothing the second time."""
        if self._caught_up:
            return
        self._caught_up = True
        known = 0
        if self._snapshots is not None:
            known = await self._call(self._snapshots.restore(self._agent, self._turns))
        for message, reply in self._replayed[known:]:
            await self._call(self._agent.observe(message, reply))
        self._replayed.clear()

    async def observe(self, message: Message, reply: str) -> None:
        """Tell the agent, which has caught up, of a turn without asking it."""
        await self._call(self._agent.observe(message, reply))
        self._turns += 1

    async def reply(self, message: Message, ideal: str) -> tuple[Reply, Costs | None]:
        """Ask the agent, which has caught up. Returns its reply and what that cost, in dollars by part (None: nothing is known).

        Raises AgentError for a reply that is none, StoppedError where it could pass the ledger's limit.
        """
        if self._give_ideal is not None:
            self._give_ideal(ideal)
        async with self._ledger.paying(models_of(self._agent), self._ledger.worst(self._agent, message)) as account:
            reply = _checked(await self._call(self._agent.reply(message)))
            costs = account.settle(used_by(reply))
        self._turns += 1
        return reply, costs

    async def save(self) -> bool:
        """Take a snapshot. Returns whether there is one: some agents have none, and some conversations keep none."""
        if self._snapshots is None:
            return False
        await self.catch_up()  # first: what an agent in another process can do is not known before
        if not has_snapshots(self._agent):
            return False
        await self._call(self._snapshots.save(self._agent, self._turns))
        return True

    async def save_progress(self) -> None:
        """Take a snapshot if the agent was needed at all."""
        if self._caught_up:
            await self.save()

    async def _call(self, call: Awaitable[T]) -> T:
        try:
            return await call
        except LongspanError:
            raise
        except Exception as error:
            raise AgentError(f"turn {self._turns}: the agent failed: {journal_text(error)}") from error


def _checked(given: object) -> Reply:
    """A reply as it can be journaled: text without lone surrogates. Raises AgentError for what is no reply."""
    if not isinstance(given, Reply) or not isinstance(given.text, str):
        what = type(given.text).__name__ if isinstance(given, Reply) else type(given).__name__
        raise AgentError(f"the agent replied with {what} instead of text in a Reply")
    used = used_by(given) if isinstance(given.besides, Mapping) else {"besides": None}
    for part, usage in used.items():
        if not isinstance(usage, Usage) or not all(isinstance(count, int) and count >= 0 for count in astuple(usage)):
            raise AgentError(f"the agent's reply says that it used {usage!r:.80} ({part}); a Usage of counts of tokens is wanted")
    return given if given.text.isascii() else replace(given, text=given.text.encode("utf-8", "replace").decode())
