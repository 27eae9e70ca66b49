"""Memories as people write them: a plain class, one under asyncio, and what a server answers."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


class Plain:
    """Finds the turns that share most words with a query."""

    def __init__(self, pages: str = "1000") -> None:
        self.pages, self.kept = int(pages), []  # type: ignore[var-annotated]

    def add(self, turns: Any, at: Any) -> list[Any]:
        self.kept += [[turn.turn_id, turn.document] for turn in turns]
        return [{"text": turn.document, "turns": [turn.turn_id], "id": turn.turn_id} for turn in turns]

    def search(self, query: str, k: int, at: Any) -> list[Any]:
        scored = sorted(self.kept[-self.pages :], key=lambda each: -len(words(each[1]) & words(query)))
        return [{"text": text, "turns": [id], "score": len(words(text) & words(query))} for id, text in scored[:k]]

    def save(self, folder: Path) -> None:
        (folder / "kept.json").write_text(json.dumps(self.kept))

    def load(self, folder: Path) -> None:
        self.kept = json.loads((folder / "kept.json").read_text())


class Tidy(Plain):
    """The same. It forgets what shares a rare word with a request, and at night keeps the newest of what begins alike."""

    def forget(self, text: str, at: Any) -> list[Any]:
        rare = {word for word in words(text) if sum(word in words(kept) for _, kept in self.kept) == 1}
        gone = [each for each in self.kept if words(each[1]) & rare]
        self.kept = [each for each in self.kept if each not in gone]
        return [{"text": text, "id": id, "turns": [id]} for id, text in gone]

    def consolidate(self, at: Any) -> dict[str, Any]:
        self.kept = list({" ".join(text.split()[:4]): [id, text] for id, text in self.kept}.values())
        return {"items": None, "usage": {"input_tokens": 70, "output_tokens": 7}, "cost_usd": 0.5}


class Billing(Tidy):
    """The same, with models that cost money: each turn that is added, each search and each night."""

    def add(self, turns: Any, at: Any) -> Any:
        words = sum(len(turn.document.split()) for turn in turns)
        return {"items": super().add(turns, at), "usage": {"input_tokens": words, "output_tokens": 3}, "cost_usd": words / 1000}

    def search(self, query: str, k: int, at: Any) -> Any:
        return {"items": super().search(query, k, at), "usage": {"input_tokens": 5, "output_tokens": 0}, "cost_usd": 0.0005}


class Unsaved(Billing):
    """The same, without snapshots. A search changes nothing."""

    read_only_search = True
    save = load = None  # type: ignore[assignment]


class Slow(Plain):
    """The same under asyncio, without snapshots; it does not tell what it stored, and what it finds is text alone; with its usage."""

    save = load = None  # type: ignore[assignment]

    settled: ClassVar[int] = 0
    """How often any of them has settled."""

    async def add(self, turns: Any, at: Any) -> Any:  # type: ignore[override]
        await asyncio.sleep(0)
        Plain.add(self, turns, at)
        return {"usage": {"model": "openai/gpt-4o-mini", "prompt_tokens": 100, "completion_tokens": 10}, "cost_usd": 0.25}

    async def search(self, query: str, k: int, at: Any) -> Any:  # type: ignore[override]
        await asyncio.sleep(0)
        return {"items": [each["text"] for each in Plain.search(self, query, k, at)]}

    async def settle(self) -> None:
        await asyncio.sleep(0)
        type(self).settled += 1


class Refreshing:
    """Finds what shares words with a query and was used lately, and what it finds has then been used: as LangChain's time-weighted
    retriever."""

    def __init__(self) -> None:
        self.kept: list[dict[str, Any]] = []

    def add(self, turns: Any, at: Any) -> None:
        self.kept += [{"text": turn.document, "turn": turn.turn_id, "used": turn.sent_at} for turn in turns]

    def search(self, query: str, k: int, at: datetime) -> list[Any]:
        def score(each: dict[str, Any]) -> float:
            hours = (at - each["used"]).total_seconds() / 3600
            return len(words(query) & words(each["text"])) / len(words(query)) + 0.99 ** max(0.0, hours)

        best = sorted(self.kept, key=score, reverse=True)[:k]
        for each in best:
            each["used"] = at
        return [{"text": each["text"], "turns": [each["turn"]]} for each in best]

    def save(self, folder: Path) -> None:
        (folder / "kept.json").write_text(json.dumps(self.kept, default=datetime.isoformat))

    def load(self, folder: Path) -> None:
        kept = json.loads((folder / "kept.json").read_text())
        self.kept += [{**each, "used": datetime.fromisoformat(each["used"])} for each in kept]  # it is new when it is loaded


class Logging:
    """SQLite's full-text search, which logs its queries where it searches."""

    def __init__(self) -> None:
        self.database = sqlite3.connect(":memory:", isolation_level=None)
        self.database.execute("CREATE VIRTUAL TABLE said USING fts5(turn, text)")

    def add(self, turns: Any, at: Any) -> None:
        self.database.executemany("INSERT INTO said VALUES (?, ?)", [(turn.turn_id, turn.document) for turn in turns])

    def search(self, query: str, k: int, at: Any) -> list[Any]:
        wanted = " OR ".join(f'"{word}"' for word in sorted(words(query)))
        found = self.database.execute("SELECT turn, text FROM said WHERE said MATCH ? ORDER BY rank LIMIT ?", [wanted, k]).fetchall()
        self.database.execute("INSERT INTO said VALUES ('query', ?)", [query])
        return [{"text": text, "turns": [turn]} for turn, text in found]

    def save(self, folder: Path) -> None:
        self.database.execute("VACUUM INTO ?", [str(folder / "said.db")])

    def load(self, folder: Path) -> None:
        saved = sqlite3.connect(folder / "said.db")
        saved.backup(self.database)
        saved.close()

    def close(self) -> None:
        self.database.close()


class SaysRefreshing(Refreshing):
    """Declares abilities that it lacks."""

    read_only_search = True


class SaysLogging(Logging):
    """Declares abilities that it lacks."""

    read_only_search = True


class Turned:
    """A turn as a request has it."""

    def __init__(self, turn: dict[str, str]) -> None:
        self.turn_id, self.document = turn["turn"], f"user: {turn['text']}\nassistant: {turn['reply']}" if turn["reply"] else turn["text"]


class Answering:
    """Answers the protocol's requests, with a memory for each conversation."""

    def __init__(self) -> None:
        self.memories: dict[str, Tidy] = {}

    def __call__(self, request: dict[str, Any]) -> tuple[int, bytes]:
        memory = self.memories.setdefault(request["conversation"], Tidy())
        answer: Any = {}
        match request["call"]:
            case "hello":
                can = ["save", "load", "forget", "consolidate", "close"]
                answer = {"protocol": 1, "can": can, "read_only_search": True}
            case "add":
                answer = {"items": memory.add(list(map(Turned, request["turns"])), request["at"])}
            case "search":
                answer = {"items": memory.search(request["query"], request["k"], request["at"])}
            case "forget":
                answer = {"items": memory.forget(request["text"], request["at"])}
            case "consolidate":
                answer = memory.consolidate(request["at"])
            case "save":
                answer = {"state": memory.kept}
            case "load":
                memory.kept = request["state"]
            case "close":
                del self.memories[request["conversation"]]
        return 200, json.dumps(answer).encode()
