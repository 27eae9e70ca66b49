"""Memories in another process: over HTTP, or as a class in another Python environment. docs/guides/memory.md describes the protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from longspan.agents.base import AgentOptions, Danger
from longspan.agents.memory.memory import Memory, MemoryItem, Used
from longspan.agents.memory.memory_answers import AddAnswer, SearchAnswer, UsageTracker
from longspan.agents.memory.turns import Turn
from longspan.agents.outside.http import HttpAgent, HttpsAgent
from longspan.agents.outside.protocol import EmptyAnswer
from longspan.agents.outside.remote import RemoteAgent, RemoteOptions

__all__ = ["HttpMemory", "HttpsMemory", "RemoteMemory"]


class RemoteMemory(Memory):
    """A memory behind `link`, a connection to another process. Missing abilities are emulated."""

    takes_target = True
    tells_turns = False

    def __init__(self, link: RemoteAgent, settings: RemoteOptions, target: str) -> None:
        super().__init__(target, settings)
        self._link = link
        self._spent = UsageTracker(settings.rates)
        self._changed_at: datetime | None = None

    @property
    def has_snapshots(self) -> bool:
        """Whether it supports both `save` and `load`."""
        return self._link.has_snapshots

    @property
    def read_only_search(self) -> bool:
        """Whether it declares that a search changes nothing."""
        return self._link.read_only_search

    @property
    def models(self) -> Any:
        """The model, if its price is given."""
        return self._spent.models

    def used(self) -> Used:
        """Return the usage that its answers report."""
        return self._spent.take()

    async def start(self) -> None:
        await self._link.start()

    async def add(self, turns: Sequence[Turn], at: datetime) -> Sequence[MemoryItem] | None:
        await self._change_at(at)
        told = [{"turn": turn.turn_id, "text": turn.text, "sent_at": turn.sent_at.isoformat(), "reply": turn.reply} for turn in turns]
        answer = await self._link.ask("add", AddAnswer, turns=told, at=at.isoformat())
        self._spent.add(answer)
        return answer.found

    async def search(self, query: str, k: int, at: datetime) -> Sequence[MemoryItem]:
        await self._link.at(at)
        answer = await self._link.ask("search", SearchAnswer, query=query, k=k, at=at.isoformat())
        self._spent.add(answer)
        return answer.found

    @property
    def consolidates(self) -> bool:
        """Whether it supports `consolidate`."""
        return self._link.supports("consolidate")

    async def consolidate(self, at: datetime) -> Sequence[MemoryItem] | None:
        await self._change_at(at)
        answer = await self._link.ask("consolidate", AddAnswer, at=at.isoformat())
        self._spent.add(answer)
        return answer.found

    @property
    def forgets(self) -> bool:
        """Whether it supports `forget`."""
        return self._link.supports("forget")

    async def forget(self, text: str, at: datetime) -> Sequence[MemoryItem] | None:
        await self._change_at(at)
        answer = await self._link.ask("forget", AddAnswer, text=text, at=at.isoformat())
        self._spent.add(answer)
        return answer.found

    async def settle(self) -> None:
        await self._link.start()
        if self._link.can("settle"):
            await self._link.ask("settle", EmptyAnswer)

    async def reset(self) -> None:
        await self._link.reset()

    async def save(self, folder: Path) -> None:
        if self._changed_at is not None:
            await self._link.at(self._changed_at)  # a snapshot stores the time of the last change, not of a later search
        await self._link.save(folder)

    async def load(self, folder: Path) -> None:
        await self._link.load(folder)
        self._changed_at = self._link.now

    async def close(self) -> None:
        await self._link.close()

    async def _change_at(self, at: datetime) -> None:
        self._changed_at = at
        await self._link.at(at)


class HttpMemory(RemoteMemory):
    """A memory that is a server, called by POST."""

    link_class: type[HttpAgent] = HttpAgent

    class Options(RemoteOptions):
        """`timeout`, and what its models cost."""

    @classmethod
    def danger(cls, target: str, options: Mapping[str, str]) -> Danger | None:
        """Return "call": it sends requests to its target."""
        return "call"

    def __init__(self, target: str, options: AgentOptions | None = None) -> None:
        settings = options if isinstance(options, RemoteOptions) else RemoteOptions()
        super().__init__(self.link_class(target, settings), settings, target)


class HttpsMemory(HttpMemory):
    """A memory that is a server, called by POST over TLS."""

    link_class = HttpsAgent
