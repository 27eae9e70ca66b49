"""The agent of a conversation that others branch off from. It answers the branches one after another, each from the end of the trunk."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import final

from longspan.simulator.contract.agent import Agent, can_rewind
from longspan.simulator.journal.turns_shown import PastTurn
from longspan.simulator.subject.snapshots import Snapshots

__all__ = ["TrunkAgent"]


@final
class TrunkAgent:
    """Brings `agent` back to the end of a trunk of `turns` turns, which `past` returns, and `depth` characters.

    After a branch, the agent rewinds to its marked state if it can. Otherwise it is loaded again from the trunk's newest snapshot.
    """

    def __init__(self, agent: Agent, snapshots: Snapshots, turns: int, depth: int, past: Callable[[], Iterable[PastTurn]]) -> None:
        self.turns = turns
        self.depth = depth
        self.past = past
        self._agent = agent
        self._snapshots = snapshots
        self._there = False
        self._used = False

    @property
    def there(self) -> bool:
        """Whether the agent is at the trunk's end."""
        return self._there

    async def go_back(self) -> int:
        """Load the agent. Return how many of the trunk's turns it has. It must read the later ones."""
        restored = await self._snapshots.restore(self._agent, self.turns)
        if self._used and not restored:
            await self._agent.reset()
        return restored

    async def arrive(self) -> None:
        """Note that the agent has read all turns of the trunk, and no others."""
        if not self._there and can_rewind(self._agent):
            await self._agent.mark()
        self._used = self._there = True

    def leave(self) -> None:
        """Note that the agent is about to get turns after the trunk."""
        self._there = False

    async def rewind(self) -> None:
        """Undo everything after the trunk for the next branch, if the agent can."""
        if can_rewind(self._agent):
            await self._agent.rewind()
            self._there = True
