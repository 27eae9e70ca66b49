"""A memory that delegates to another."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from longspan.agents.memory.memory import Memory, MemoryItem, Used
from longspan.agents.memory.turns import Turn

__all__ = ["Held"]


class Held(Memory):
    """A memory that delegates to `self.memory`, which a subclass creates."""

    memory: Memory

    @property
    def has_snapshots(self) -> bool:
        """Whether the inner memory supports snapshots."""
        return self.memory.has_snapshots

    @property
    def read_only_search(self) -> bool:
        """Whether a search leaves the inner memory unchanged."""
        return self.memory.read_only_search

    @property
    def models(self) -> Any:
        """The inner memory's models."""
        return self.memory.models

    def used(self) -> Used:
        return self.memory.used()

    async def start(self) -> None:
        await self.memory.start()

    async def add(self, turns: Sequence[Turn], at: datetime) -> Sequence[MemoryItem] | None:
        return await self.memory.add(turns, at)

    async def search(self, query: str, k: int, at: datetime) -> Sequence[MemoryItem]:
        return await self.memory.search(query, k, at)

    @property
    def consolidates(self) -> bool:
        """Whether the inner memory consolidates."""
        return self.memory.consolidates

    async def consolidate(self, at: datetime) -> Sequence[MemoryItem] | None:
        return await self.memory.consolidate(at)

    @property
    def forgets(self) -> bool:
        """Whether the inner memory can forget."""
        return self.memory.forgets

    async def forget(self, text: str, at: datetime) -> Sequence[MemoryItem] | None:
        return await self.memory.forget(text, at)

    async def settle(self) -> None:
        await self.memory.settle()

    async def size(self) -> int | None:
        return await self.memory.size()

    async def reset(self) -> None:
        await self.memory.reset()

    async def save(self, folder: Path) -> None:
        await self.memory.save(folder)

    async def load(self, folder: Path) -> None:
        await self.memory.load(folder)

    async def close(self) -> None:
        await self.memory.close()
