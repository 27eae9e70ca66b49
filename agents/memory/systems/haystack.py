"""An adapter of Haystack's in-memory document store: `write_documents` for each batch of turns, and `bm25_retrieval`."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Any


class Adapter:
    """A memory with one document in a private `InMemoryDocumentStore` per turn."""

    read_only_search = True

    def __init__(self, models: Any) -> None:
        os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
        from haystack import Document
        from haystack.document_stores.in_memory import InMemoryDocumentStore

        self.document, self.made = Document, InMemoryDocumentStore
        self.store = InMemoryDocumentStore(shared=False)

    def add(self, turns: Any, at: datetime) -> list[dict[str, Any]]:
        self.store.write_documents(
            [
                self.document(id=turn.turn_id, content=turn.document, meta={"turn": turn.turn_id, "at": turn.sent_at.isoformat()})
                for turn in turns
            ]
        )
        return [{"id": turn.turn_id, "text": turn.document, "turns": [turn.turn_id]} for turn in turns]

    def search(self, query: str, k: int, at: datetime) -> list[dict[str, Any]]:
        found = self.store.bm25_retrieval(query=query, top_k=k)
        return [{"text": each.content, "turns": [each.meta["turn"]], "at": each.meta["at"], "score": each.score} for each in found]

    def save(self, folder: Path) -> None:
        self.store.save_to_disk(str(folder / "documents.json"))

    def load(self, folder: Path) -> None:
        self.store = self.made.load_from_disk(str(folder / "documents.json"))
