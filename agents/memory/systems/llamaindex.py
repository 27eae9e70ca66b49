"""An adapter of LlamaIndex's vector memory block: `aput` for each turn, and `aget` with the query, as its `Memory` calls them.

The block joins all results into one string, which the adapter splits again.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

TOLD = re.compile(r"<message role='(?:user|assistant)'>(.*?)</message>", re.DOTALL)


class Adapter:
    """A memory with one entry in a `VectorMemoryBlock` per turn."""

    read_only_search = True

    def __init__(self, models: Any) -> None:
        from llama_index.core.base.embeddings.base import BaseEmbedding
        from llama_index.core.llms import ChatMessage
        from llama_index.core.memory import VectorMemoryBlock
        from llama_index.core.vector_stores import SimpleVectorStore, VectorStoreQueryResult
        from pydantic import Field

        class Lent(BaseEmbedding):
            """The lent embedder."""

            def _get_text_embedding(self, text: str) -> list[float]:
                vector: list[float] = models.embed([text])[0]
                return vector

            def _get_query_embedding(self, query: str) -> list[float]:
                return self._get_text_embedding(query)

            async def _aget_query_embedding(self, query: str) -> list[float]:
                return self._get_text_embedding(query)

        class WithTexts(SimpleVectorStore):
            """LlamaIndex's simple vector store, extended to return texts, which the block requires of a store."""

            stores_text: bool = True
            nodes: Any = Field(default_factory=dict)

            def add(self, nodes: Any, **more: Any) -> Any:
                for node in nodes:
                    self.nodes[node.node_id] = node
                return super().add(nodes, **more)

            def query(self, query: Any, **more: Any) -> Any:
                found = super().query(query, **more)
                return VectorStoreQueryResult([self.nodes[each] for each in found.ids], found.similarities, found.ids)

        self.message = ChatMessage
        self.block: Any = VectorMemoryBlock(
            vector_store=WithTexts(),
            embed_model=Lent(),
            retrieval_context_window=1,
            format_template="{{ text }}",
        )
        self.told: list[list[str]] = []

    async def add(self, turns: Any, at: datetime) -> None:
        for turn in turns:
            await self.put(turn.text, turn.reply)

    async def put(self, text: str, reply: str) -> None:
        said = [self.message(role="user", content=text)]
        if reply:
            said.append(self.message(role="assistant", content=reply))
        await self.block.aput(messages=said)
        self.told.append([text, reply])

    async def search(self, query: str, k: int, at: datetime) -> list[str]:
        self.block.similarity_top_k = k
        found = await self.block.aget(messages=[self.message(role="user", content=query)])
        return ["\n".join(TOLD.findall(each)) for each in re.split(r"\n\n(?=<message role='user'>)", found) if each.strip()]

    def save(self, folder: Path) -> None:
        (folder / "told.json").write_text(json.dumps(self.told), "utf-8")

    async def load(self, folder: Path) -> None:
        for text, reply in json.loads((folder / "told.json").read_text("utf-8")):
            await self.put(text, reply)
