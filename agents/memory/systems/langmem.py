"""An adapter of LangMem's tools over LangGraph's store: `manage_memory` creates one memory per turn, and `search_memory` finds them.

With a model, LangMem's store manager instead reads each batch of turns and creates, changes and merges memories.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

HERE = ("conversation",)


class Adapter:
    """A memory in an indexed `InMemoryStore`."""

    read_only_search = True

    def __init__(self, models: Any, infer: str = "false") -> None:
        from langgraph.store.memory import InMemoryStore
        from langmem import create_manage_memory_tool, create_memory_store_manager, create_search_memory_tool

        self.infer = infer == "true"
        self.store: Any = InMemoryStore(index={"embed": models.embed, "dims": models.dimensions, "fields": ["content"]})
        self.manage = create_manage_memory_tool(HERE, store=self.store)
        self.find = create_search_memory_tool(HERE, store=self.store)
        if self.infer:
            from langchain_openai import ChatOpenAI

            model = ChatOpenAI(model=models.name, base_url=models.url, api_key=models.key, max_retries=0)
            self.manager = create_memory_store_manager(model, namespace=HERE, store=self.store)

    def add(self, turns: Any, at: datetime) -> list[dict[str, Any]] | None:
        if not self.infer:
            told = [(turn, self.manage.invoke({"content": turn.document, "action": "create"})) for turn in turns]
            return [{"id": said.split()[-1], "text": turn.document, "turns": [turn.turn_id]} for turn, said in told]
        said = []
        for turn in turns:
            said.append({"role": "user", "content": f"[{turn.sent_at:%Y-%m-%d %H:%M}] {turn.text}"})
            if turn.reply:
                said.append({"role": "assistant", "content": turn.reply})
        self.manager.invoke({"messages": said}, config={"configurable": {"langgraph_user_id": "user"}})
        return None

    def search(self, query: str, k: int, at: datetime) -> list[dict[str, Any]]:
        found = json.loads(self.find.invoke({"query": query, "limit": k}))
        texts = [(each["key"], each["value"]["content"], each["score"]) for each in found]
        return [
            {"id": key, "text": text if isinstance(text, str) else json.dumps(text), "score": score, "derived": self.infer}
            for key, text, score in texts
        ]

    def save(self, folder: Path) -> None:
        items = self.store.search(HERE, limit=1_000_000)
        (folder / "items.json").write_text(json.dumps([[item.key, item.value] for item in items]), "utf-8")

    def load(self, folder: Path) -> None:
        for key, value in json.loads((folder / "items.json").read_text("utf-8")):
            self.store.put(HERE, key, value)
