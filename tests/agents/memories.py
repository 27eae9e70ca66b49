"""Memories as people write them: a plain class, one under asyncio, and what a server answers."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any


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


class Slow(Plain):
    """The same under asyncio, without snapshots; it does not tell what it stored, and what it finds is text alone; with its usage."""

    save = load = None  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.settled = False

    async def add(self, turns: Any, at: Any) -> Any:  # type: ignore[override]
        await asyncio.sleep(0)
        Plain.add(self, turns, at)
        return {"usage": {"model": "openai/gpt-4o-mini", "prompt_tokens": 100, "completion_tokens": 10}, "cost_usd": 0.25}

    async def search(self, query: str, k: int, at: Any) -> Any:  # type: ignore[override]
        await asyncio.sleep(0)
        return {"items": [each["text"] for each in Plain.search(self, query, k, at)]}

    async def settle(self) -> None:
        await asyncio.sleep(0)
        self.settled = True


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
                answer = {"protocol": 1, "can": ["save", "load", "forget", "consolidate", "close"]}
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
