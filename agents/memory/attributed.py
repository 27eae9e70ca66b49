"""A wrapper that infers the source turns and dates of memories that do not report them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final, final

import trio
from pydantic import TypeAdapter

from longspan.agents.base import AgentError
from longspan.agents.memory.memory import Memory, MemoryItem, Used
from longspan.agents.memory.sources import InferredTurns, Sources
from longspan.agents.memory.turns import Turn, read_turns, write_turns
from longspan.simulator.base.errors import one_line
from longspan.simulator.subject.ledger import Rates

__all__ = ["AttributedMemory"]

TURNS: Final = "turns.jsonl"
"""The snapshot file with all turns."""

MADE: Final = "made.json"
"""The snapshot file with the turns of each memory made, by its id, and whether they were inferred."""

INNER: Final = "inner"
"""The snapshot folder that the inner memory writes to."""


_MADE: Final = TypeAdapter(dict[str, InferredTurns])


@final
class AttributedMemory(Memory):
    """A memory that completes what `inner` leaves out.

    A memory without `turns` gets those recorded for its id when it was made, or the turns inferred from its wording. A found memory without
    a date gets the date of its last turn.
    """

    takes_target = True

    def __init__(self, inner: Memory) -> None:
        super().__init__(inner.target)
        self.inner = inner
        self.lender = inner.lender
        self._clear()

    def _clear(self) -> None:
        self._sources = Sources()
        self._made: dict[str, InferredTurns] = {}

    @property
    def has_snapshots(self) -> bool:
        """Whether the inner memory supports snapshots."""
        return self.inner.has_snapshots

    @property
    def read_only_search(self) -> bool:
        """Whether a search leaves the inner memory unchanged."""
        return self.inner.read_only_search

    @property
    def models(self) -> Mapping[str, str | Rates] | None:
        """The inner memory's models."""
        return self.inner.models

    @property
    def turns(self) -> Sequence[Turn]:
        """All turns added."""
        return self._sources.turns

    def used(self) -> Used:
        return self.inner.used()

    async def start(self) -> None:
        await self.inner.start()

    async def add(self, turns: Sequence[Turn], at: datetime) -> Sequence[MemoryItem] | None:
        made = await self.inner.add(turns, at)
        for turn in turns:
            self._sources.keep(turn)
        return self._note_turns(made, (turns[0].turn_id,) if len(turns) == 1 else ())

    @property
    def consolidates(self) -> bool:
        """Whether the inner memory consolidates."""
        return self.inner.consolidates

    async def consolidate(self, at: datetime) -> Sequence[MemoryItem] | None:
        return self._note_turns(await self.inner.consolidate(at))

    @property
    def forgets(self) -> bool:
        """Whether the inner memory can forget."""
        return self.inner.forgets

    async def forget(self, text: str, at: datetime) -> Sequence[MemoryItem] | None:
        gone = await self.inner.forget(text, at)
        return None if gone is None else list(map(self._complete_item, gone))

    def _note_turns(self, made: Sequence[MemoryItem] | None, one: tuple[str, ...] = ()) -> Sequence[MemoryItem] | None:
        """Record the turns behind each memory. Return the memories with their turns.

        `one`: the only turn that was added. The memory may have held back earlier turns, so a memory made now can also come from those.
        """
        if made is None:
            return None
        known = [self._infer_turns(item, InferredTurns(one, "part") if one else None) for item in made]
        for item in known:
            before = self._made.get(item.id or "")
            if item.id is not None and (item.turns or before):
                turns = tuple(dict.fromkeys((*(before.turns if before else ()), *item.turns)))
                sure = before is None or (not (before.extent or item.inferred) and item.turns)
                self._made[item.id] = InferredTurns(turns, item.inferred if sure else "part")
        return known

    def _infer_turns(self, item: MemoryItem, known: InferredTurns | None) -> MemoryItem:
        """Return a memory with its turns: the ones it names, the `known` ones, or those inferred from its wording.

        Wording that explains the whole memory outweighs `known` turns that were themselves inferred.
        """
        if item.turns:
            return item
        if known is not None and not known.extent:
            return replace(item, turns=known.turns)
        worded = self._sources.of(item.text)
        source = worded if known is None or worded.extent == "whole" else known
        return replace(item, turns=source.turns, inferred="part" if source.extent and item.derived else source.extent)

    async def search(self, query: str, k: int, at: datetime) -> Sequence[MemoryItem]:
        found = await self.inner.search(query, k, at)
        return [*map(self._complete_item, found[:k]), *found[k:]]

    def _complete_item(self, item: MemoryItem) -> MemoryItem:
        """Return a found memory with its turns and date, if known."""
        item = self._infer_turns(item, self._made.get(item.id or ""))
        return replace(item, at=item.at or self._sources.last(item.turns))

    async def settle(self) -> None:
        await self.inner.settle()

    async def size(self) -> int | None:
        return await self.inner.size()

    async def reset(self) -> None:
        self._clear()
        await self.inner.reset()

    async def save(self, folder: Path) -> None:
        inner = trio.Path(folder / INNER)
        await inner.mkdir()
        await self.inner.save(Path(inner))
        await trio.to_thread.run_sync(write_turns, folder / TURNS, tuple(self._sources.turns))
        await trio.Path(folder / MADE).write_text(json.dumps(self._made), "utf-8")

    async def load(self, folder: Path) -> None:
        try:
            turns = await trio.to_thread.run_sync(lambda: tuple(read_turns(folder / TURNS)))
            made = _MADE.validate_json(await trio.Path(folder / MADE).read_bytes())
        except (OSError, ValueError) as error:
            raise AgentError(f"{folder / TURNS}: not a snapshot of a memory: {one_line(error)}") from error
        await self.inner.load(folder / INNER)
        self._clear()
        self._made = made
        for turn in turns:
            self._sources.keep(turn)

    async def close(self) -> None:
        await self.inner.close()
