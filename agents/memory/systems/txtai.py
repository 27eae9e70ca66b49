"""An adapter of txtai's embeddings database with content: `upsert` for each batch of turns, and `search` in SQL."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

FOUND = "select id, text, turn, said, score from txtai where similar(:query) limit {:d}"


class Adapter:
    """A memory with one row of an `Embeddings` per turn, with vectors from the lent embedder."""

    read_only_search = True

    def __init__(self, models: Any) -> None:
        import numpy
        from txtai import Embeddings

        self.made = Embeddings

        def transform(texts: Any) -> Any:
            return numpy.asarray(models.embed(texts), dtype=numpy.float32)

        self.settings = {"method": "external", "transform": transform, "content": True}
        self.rows: Any = Embeddings(**self.settings)
        self.added = 0

    def add(self, turns: Any, at: datetime) -> list[dict[str, Any]]:
        rows = [
            (self.added + number, {"text": turn.document, "turn": turn.turn_id, "said": turn.sent_at.isoformat()}, None)
            for number, turn in enumerate(turns)
        ]
        self.rows.upsert(rows)
        self.added += len(rows)
        return [{"id": turn.turn_id, "text": turn.document, "turns": [turn.turn_id]} for turn in turns]

    def search(self, query: str, k: int, at: datetime) -> list[dict[str, Any]]:
        if not self.added:
            return []
        found = self.rows.search(FOUND.format(k), parameters={"query": query})
        return [{"text": each["text"], "turns": [each["turn"]], "at": each["said"], "score": each["score"]} for each in found]

    def save(self, folder: Path) -> None:
        (folder / "added").write_text(str(self.added))
        if self.added:
            self.rows.save(str(folder / "rows.tar.gz"))

    def load(self, folder: Path) -> None:
        self.added = int((folder / "added").read_text())
        self.rows = self.made(**self.settings)
        if self.added:
            self.rows.load(str(folder / "rows.tar.gz"), config=self.settings)

    def close(self) -> None:
        self.rows.close()
