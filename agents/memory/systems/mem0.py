"""An adapter of mem0 (open source) with a local Qdrant: `add` for each batch of turns, and `search`.

With a model, mem0 extracts facts from each batch; without one, it stores turns verbatim (`infer=false`).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

USER = "user"


class Adapter:
    """A memory in a folder, with vectors in Qdrant and the history in SQLite."""

    read_only_search = True

    def __init__(self, models: Any, infer: str = "false") -> None:
        self.models, self.infer = models, infer == "true"
        self.home = tempfile.TemporaryDirectory(prefix="mem0-home-")
        self.kept = tempfile.TemporaryDirectory(prefix="mem0-")
        os.environ["MEM0_TELEMETRY"] = "False"
        os.environ["MEM0_DIR"] = self.home.name
        from mem0 import Memory

        self.made = Memory
        self.open()

    def open(self) -> None:
        lent = {"api_key": self.models.key, "openai_base_url": self.models.url, "model": self.models.name}
        length = self.models.dimensions
        self.memory: Any = self.made.from_config(
            {
                "llm": {"provider": "openai", "config": lent},
                "embedder": {"provider": "openai", "config": {**lent, "embedding_dims": length}},
                "vector_store": {
                    "provider": "qdrant",
                    "config": {"path": f"{self.kept.name}/qdrant", "on_disk": True, "embedding_model_dims": length},
                },
                "history_db_path": f"{self.kept.name}/history.db",
            }
        )

    def add(self, turns: Any, at: datetime) -> list[dict[str, Any]]:
        if self.infer:
            said = []
            for turn in turns:
                said.append({"role": "user", "content": f"[{turn.sent_at:%Y-%m-%d %H:%M}] {turn.text}"})
                if turn.reply:
                    said.append({"role": "assistant", "content": turn.reply})
            made = self.memory.add(said, user_id=USER)["results"]
            return [{"id": each["id"], "text": each["memory"], "derived": True} for each in made if each.get("event") != "DELETE"]
        kept = []
        for turn in turns:
            told = {"turn": turn.turn_id, "said": turn.sent_at.isoformat()}
            (each,) = self.memory.add([{"role": "user", "content": turn.document}], user_id=USER, infer=False, metadata=told)["results"]
            kept.append({"id": each["id"], "text": each["memory"], "turns": [turn.turn_id]})
        return kept

    def search(self, query: str, k: int, at: datetime) -> list[dict[str, Any]]:
        found = self.memory.search(query, filters={"user_id": USER}, top_k=k, threshold=0.0)["results"]
        return [self.item(each, each.get("metadata") or {}) for each in found]

    def item(self, found: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
        known = {"turns": [told["turn"]], "at": told["said"]} if "turn" in told else {}
        return {"id": found["id"], "text": found["memory"], "score": found.get("score"), "derived": self.infer, **known}

    def save(self, folder: Path) -> None:
        self.shut()
        shutil.copytree(self.kept.name, folder / "mem0")
        self.open()

    def load(self, folder: Path) -> None:
        self.shut()
        self.kept.cleanup()
        self.kept = tempfile.TemporaryDirectory(prefix="mem0-")
        shutil.copytree(folder / "mem0", self.kept.name, dirs_exist_ok=True)
        self.open()

    def shut(self) -> None:
        self.memory.vector_store.client.close()
        self.memory.db.close()

    def close(self) -> None:
        self.shut()
        self.kept.cleanup()
        self.home.cleanup()
