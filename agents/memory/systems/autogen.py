"""An adapter of AutoGen's `ListMemory`: `add` for each turn, and `query`, which always returns the whole list."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any


class Adapter:
    """A memory with one entry in a `ListMemory` per turn."""

    read_only_search = True

    def __init__(self, models: Any) -> None:
        from autogen_core.memory import ListMemory, MemoryContent, MemoryMimeType

        self.memory: Any = ListMemory()
        self.content: Any = lambda text, told: MemoryContent(content=text, mime_type=MemoryMimeType.TEXT, metadata=told)

    async def add(self, turns: Any, at: datetime) -> list[dict[str, Any]]:
        for turn in turns:
            await self.memory.add(self.content(turn.document, {"turn": turn.turn_id, "at": turn.sent_at.isoformat()}))
        return [{"id": turn.turn_id, "text": turn.document, "turns": [turn.turn_id]} for turn in turns]

    async def search(self, query: str, k: int, at: datetime) -> list[dict[str, Any]]:
        found = (await self.memory.query(query)).results
        return [{"text": each.content, "turns": [each.metadata["turn"]], "at": each.metadata["at"]} for each in found]

    def save(self, folder: Path) -> None:
        told = [[each.content, each.metadata] for each in self.memory.content]
        (folder / "list.json").write_text(json.dumps(told), "utf-8")

    async def load(self, folder: Path) -> None:
        for text, told in json.loads((folder / "list.json").read_text("utf-8")):
            await self.memory.add(self.content(text, told))
