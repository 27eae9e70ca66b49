"""An adapter of LangGraph's store: `put` for each turn, and `search` by the query's vector."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

HERE = ("conversation",)


class Adapter:
    """A memory with one item in an indexed `InMemoryStore` per turn."""

    read_only_search = True  # items never expire, so a search cannot extend their life

    def __init__(self, models: Any) -> None:
        from langgraph.store.memory import InMemoryStore

        self.store = InMemoryStore(index={"embed": models.embed, "dims": models.dimensions, "fields": ["text"]})
        self.values: list[dict[str, str]] = []

    def add(self, turns: Any, at: datetime) -> list[dict[str, Any]]:
        for turn in turns:
            self.put({"text": turn.document, "turn": turn.turn_id, "at": turn.sent_at.isoformat()})
        return [{"id": turn.turn_id, "text": turn.document, "turns": [turn.turn_id]} for turn in turns]

    def put(self, value: dict[str, str]) -> None:
        self.store.put(HERE, str(len(self.values)), value)
        self.values.append(value)

    def search(self, query: str, k: int, at: datetime) -> list[dict[str, Any]]:
        found = [(item.value, item.score) for item in self.store.search(HERE, query=query, limit=k)]
        return [{"text": value["text"], "turns": [value["turn"]], "at": value["at"], "score": score} for value, score in found]

    def save(self, folder: Path) -> None:
        (folder / "items.json").write_text(json.dumps(self.values), "utf-8")

    def load(self, folder: Path) -> None:
        for value in json.loads((folder / "items.json").read_text("utf-8")):
            self.put(value)
