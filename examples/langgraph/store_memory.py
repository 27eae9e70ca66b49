"""LangGraph's store as a memory: each turn is an item, found by its embedding."""

import json
import zlib

from langgraph.store.memory import InMemoryStore

HERE = ("conversation",)
DIMENSIONS = 256


def words(texts):
    """Embed by words alone, without a model or a network: give `embed=openai:text-embedding-3-small` for meaning."""
    vectors = [[0.0] * DIMENSIONS for _ in texts]
    for vector, text in zip(vectors, texts, strict=True):
        for word in text.lower().split():
            vector[zlib.crc32(word.strip(".,!?").encode()) % DIMENSIONS] += 1.0
        vector[0] += 1e-9  # no vector is zero
    return vectors


class Store:
    read_only_search = True  # a search changes nothing: items have no time to live that it would extend

    def __init__(self, embed="", dims="1536"):  # options come as text
        index = {"embed": embed or words, "dims": int(dims) if embed else DIMENSIONS, "fields": ["text"]}
        self.store, self.added = InMemoryStore(index=index), 0

    def add(self, turns, at):
        for turn in turns:
            self.put(f"{self.added:07}", {"text": turn.document, "turn": turn.turn_id, "at": turn.sent_at.isoformat()})
        return [{"id": turn.turn_id, "text": turn.document, "turns": [turn.turn_id]} for turn in turns]

    def put(self, key, value):
        self.store.put(HERE, key, value)
        self.added += 1

    def search(self, query, k, at):
        found = self.store.search(HERE, query=query, limit=k)
        return [{"text": item.value["text"], "turns": [item.value["turn"]], "at": item.value["at"], "score": item.score} for item in found]

    def save(self, folder):
        items = sorted(self.store.search(HERE, limit=self.added or 1), key=lambda item: item.key)
        (folder / "items.json").write_text(json.dumps([[item.key, item.value] for item in items]), "utf-8")

    def load(self, folder):
        for key, value in json.loads((folder / "items.json").read_text("utf-8")):
            self.put(key, value)
