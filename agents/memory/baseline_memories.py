"""Baseline memories that keep turns verbatim: all of them, none, or the newest."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, final

import trio

from longspan.agents.base import AgentError, AgentOptions, Tokens
from longspan.agents.memory.memory import Memory, MemoryItem
from longspan.agents.memory.turns import Turn, read_turns, write_turns
from longspan.simulator.base.errors import one_line
from longspan.simulator.base.tokens import Tokenizer

__all__ = ["Full", "KeptTurns", "Nothing", "Recent", "item_of"]

FILE: Final = "turns.jsonl"
"""The snapshot file."""


def item_of(turn: Turn, score: float | None = None) -> MemoryItem:
    """Return a turn as a memory."""
    return MemoryItem(turn.document, (turn.turn_id,), score, turn.turn_id, turn.sent_at)


class KeptTurns(Memory):
    """A memory that can be rebuilt from the turns it keeps."""

    read_only_search = True
    at_door = False

    @classmethod
    def danger(cls, target: str, options: Mapping[str, str]) -> None:
        """Return None: it is harmless."""

    def without_model(self) -> Memory:
        """Return the memory itself: it costs nothing."""
        return self

    @property
    def turns(self) -> Iterable[Turn]:
        """The stored turns, oldest first."""
        raise NotImplementedError

    def keep(self, turn: Turn) -> None:
        """Add a turn."""
        raise NotImplementedError

    async def add(self, turns: Sequence[Turn], at: datetime) -> Sequence[MemoryItem]:
        for turn in turns:
            self.keep(turn)
        return [item_of(turn) for turn in turns]

    async def save(self, folder: Path) -> None:
        await trio.to_thread.run_sync(write_turns, folder / FILE, tuple(self.turns))

    async def load(self, folder: Path) -> None:
        try:
            turns = await trio.to_thread.run_sync(lambda: tuple(read_turns(folder / FILE)))
        except (OSError, ValueError) as error:
            raise AgentError(f"{folder / FILE}: not a snapshot of a memory: {one_line(error)}") from error
        await self.reset()
        for turn in turns:
            self.keep(turn)


@final
class Full(KeptTurns):
    """All turns for every query: the ceiling for any memory."""

    whole = True

    def __init__(self, target: str = "", options: AgentOptions | None = None) -> None:
        super().__init__(target, options)
        self._turns: list[Turn] = []

    @property
    def turns(self) -> Iterable[Turn]:
        return self._turns

    def keep(self, turn: Turn) -> None:
        self._turns.append(turn)

    async def search(self, query: str, k: int, at: datetime) -> Sequence[MemoryItem]:
        return [item_of(turn) for turn in self._turns]

    async def reset(self) -> None:
        self._turns.clear()


@final
class Nothing(Memory):
    """Nothing for every query: the floor for any memory."""

    read_only_search = True
    keeps = False
    at_door = False

    @classmethod
    def danger(cls, target: str, options: Mapping[str, str]) -> None:
        """Return None: it is harmless."""

    def without_model(self) -> Memory:
        """Return the memory itself: it costs nothing."""
        return self

    async def add(self, turns: Sequence[Turn], at: datetime) -> Sequence[MemoryItem]:
        return []

    async def search(self, query: str, k: int, at: datetime) -> Sequence[MemoryItem]:
        return []

    async def save(self, folder: Path) -> None:
        """Save nothing."""

    async def load(self, folder: Path) -> None:
        """Restore nothing."""


@final
class Recent(KeptTurns):
    """The newest turns, by tokens of cl100k_base."""

    whole = True

    class Options(AgentOptions):
        """`tokens`: the number of tokens of the conversation to keep."""

        tokens: Tokens = 8_000

    def __init__(self, target: str = "", options: AgentOptions | None = None) -> None:
        super().__init__(target, options)
        self._most = options.tokens if isinstance(options, self.Options) else self.Options().tokens
        self._count = Tokenizer().count
        self._turns: deque[tuple[Turn, int]] = deque()
        self._tokens = 0

    @property
    def turns(self) -> Iterable[Turn]:
        return (turn for turn, _ in self._turns)

    def keep(self, turn: Turn) -> None:
        tokens = self._count(turn.document)
        self._turns.append((turn, tokens))
        self._tokens += tokens
        while self._turns and self._tokens > self._most:
            self._tokens -= self._turns.popleft()[1]

    async def search(self, query: str, k: int, at: datetime) -> Sequence[MemoryItem]:
        return [item_of(turn) for turn in self.turns]

    async def reset(self) -> None:
        self._turns.clear()
        self._tokens = 0
