"""An adapter of Semantic Kernel's text memory over its volatile store: `save_information` for each turn, and `search`."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

HERE = "conversation"


class Adapter:
    """A memory with one entry in a `SemanticTextMemory` per turn."""

    read_only_search = True

    def __init__(self, models: Any) -> None:
        import numpy
        from semantic_kernel.connectors.ai.embeddings.embedding_generator_base import EmbeddingGeneratorBase
        from semantic_kernel.memory import SemanticTextMemory, VolatileMemoryStore

        class Lent(EmbeddingGeneratorBase):
            """The lent embedder."""

            async def generate_embeddings(self, texts: Any, settings: Any = None, **more: Any) -> Any:
                return numpy.asarray(models.embed(texts), dtype=numpy.float32)

        self.memory: Any = SemanticTextMemory(VolatileMemoryStore(), Lent(ai_model_id=models.name))
        self.told: list[list[str]] = []

    async def add(self, turns: Any, at: datetime) -> list[dict[str, Any]]:
        for turn in turns:
            await self.put(turn.turn_id, turn.document, turn.sent_at.isoformat())
        return [{"id": turn.turn_id, "text": turn.document, "turns": [turn.turn_id]} for turn in turns]

    async def put(self, turn: str, text: str, said: str) -> None:
        await self.memory.save_information(HERE, text=text, id=turn, additional_metadata=said)
        self.told.append([turn, text, said])

    async def search(self, query: str, k: int, at: datetime) -> list[dict[str, Any]]:
        if not self.told:
            return []
        found = await self.memory.search(HERE, query, limit=k, min_relevance_score=-1.0)
        return [{"text": each.text, "turns": [each.id], "at": each.additional_metadata, "score": float(each.relevance)} for each in found]

    def save(self, folder: Path) -> None:
        (folder / "told.json").write_text(json.dumps(self.told), "utf-8")

    async def load(self, folder: Path) -> None:
        for turn, text, said in json.loads((folder / "told.json").read_text("utf-8")):
            await self.put(turn, text, said)
