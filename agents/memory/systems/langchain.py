"""An adapter of LangChain's in-memory vector store: `add_documents` for each batch of turns, and `similarity_search_with_score`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any


class Adapter:
    """A memory with one document in an `InMemoryVectorStore` per turn."""

    read_only_search = True

    def __init__(self, models: Any) -> None:
        from langchain_core.documents import Document
        from langchain_core.embeddings import Embeddings
        from langchain_core.vectorstores import InMemoryVectorStore

        class Lent(Embeddings):
            """The lent embedder."""

            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                vectors: list[list[float]] = models.embed(texts)
                return vectors

            def embed_query(self, text: str) -> list[float]:
                return self.embed_documents([text])[0]

        self.document, self.embeddings = Document, Lent()
        self.store = InMemoryVectorStore(self.embeddings)

    def add(self, turns: Any, at: datetime) -> list[dict[str, Any]]:
        self.store.add_documents(
            [
                self.document(page_content=turn.document, id=turn.turn_id, metadata={"turn": turn.turn_id, "at": turn.sent_at.isoformat()})
                for turn in turns
            ]
        )
        return [{"id": turn.turn_id, "text": turn.document, "turns": [turn.turn_id]} for turn in turns]

    def search(self, query: str, k: int, at: datetime) -> list[dict[str, Any]]:
        found = self.store.similarity_search_with_score(query, k=k)
        return [
            {"text": each.page_content, "turns": [each.metadata["turn"]], "at": each.metadata["at"], "score": score}
            for each, score in found
        ]

    def save(self, folder: Path) -> None:
        self.store.dump(str(folder / "store.json"))

    def load(self, folder: Path) -> None:
        self.store = type(self.store).load(str(folder / "store.json"), self.embeddings)
