"""Memories that cost money in ways of their own: a lent model, a thread in the background, a client of one's own."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2
import trio

from longspan.agents.base import AgentError
from longspan.agents.memory.lent import MODEL, LentModels
from longspan.agents.memory.ltm.embedders import HashEmbedder
from longspan.agents.memory.memory import Memory, MemoryItem, Used
from longspan.agents.memory.turns import Turn
from longspan.agents.models.core import make_core
from longspan.agents.outside.bridge import Models
from longspan.simulator.subject.ledger import Rates
from tests.durability.provider import PRICES

__all__ = ["Background", "Endless", "Lent", "Own", "Unsaved"]


NOTE = "Note this. " * 100


def fails() -> bool:
    """Count a call of `add` in the file that the environment names, and return whether it is the one that fails."""
    path, at = Path(os.environ["PAYERS_COUNT"]), int(os.environ["PAYERS_FAIL_AT"])
    calls = int(path.read_text()) + 1 if path.exists() else 1
    path.write_text(str(calls))
    return calls == at


class Lent(Memory):
    """Asks the model that it is lent twice for each turn, and fails between the two where it is to fail."""

    def __init__(self) -> None:
        super().__init__()
        options = dict(pair.split("=") for pair in f"base_url={os.environ['PAYERS_URL']}&{PRICES}".split("&"))
        core = make_core("memory/lent", "openai/m", options, ())
        assert core is not None
        self.lent = LentModels(core, HashEmbedder())
        self._models: Mapping[str, str | Rates] = {MODEL: core.priced_as}
        self.kept: list[Turn] = []

    @property
    def models(self) -> Mapping[str, str | Rates]:
        return self._models

    def used(self) -> Used:
        return self.lent.take()

    def ask(self) -> None:
        self.client().ask("chat/completions", {"messages": [{"role": "user", "content": NOTE}], "max_tokens": 20})

    def client(self) -> Models:
        return Models(self.lent.url, self.lent.key)

    async def add(self, turns: Sequence[Turn], at: datetime) -> list[MemoryItem]:
        failing = fails()
        for turn in turns:
            try:
                await trio.to_thread.run_sync(self.ask)
                if failing:
                    raise AgentError("it fails on purpose")
                await trio.to_thread.run_sync(self.ask)
            except RuntimeError as error:
                raise AgentError(f"the lent model failed: {error}") from None
            self.kept.append(turn)
        return [MemoryItem(turn.text, (turn.turn_id,), id=turn.turn_id) for turn in turns]

    async def search(self, query: str, k: int, at: datetime) -> list[MemoryItem]:
        return [MemoryItem(turn.text, (turn.turn_id,), id=turn.turn_id) for turn in self.kept[-k:]]

    async def save(self, folder: Path) -> None:
        entries = [turn.entry for turn in self.kept]
        (folder / "kept.json").write_text(json.dumps(entries))

    async def load(self, folder: Path) -> None:
        from longspan.agents.memory.turns import as_turn

        self.kept = [as_turn(entry) for entry in json.loads((folder / "kept.json").read_text())]

    async def close(self) -> None:
        self.lent.close()


class Unsaved(Lent):
    """The same without snapshots."""

    has_snapshots = False


class Endless(Lent):
    """Asks the lent model until it is refused, and then some more."""

    async def add(self, turns: Sequence[Turn], at: datetime) -> list[MemoryItem]:
        for _ in range(5):
            with suppress(RuntimeError):
                while True:
                    await trio.to_thread.run_sync(self.ask)
        return []


class Background(Lent):
    """Asks the lent model from a thread of its own, which may be under way when `add` has returned."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[threading.Thread] = []

    async def add(self, turns: Sequence[Turn], at: datetime) -> list[MemoryItem]:
        for earlier in self.threads[:-1]:  # the last one may still be under way
            await trio.to_thread.run_sync(earlier.join)
        self.kept += turns
        thread = threading.Thread(target=self._quietly)
        thread.start()
        self.threads.append(thread)
        return [MemoryItem(turn.text, (turn.turn_id,), id=turn.turn_id) for turn in turns]

    def _quietly(self) -> None:
        with suppress(RuntimeError):
            self.ask()

    async def close(self) -> None:
        for thread in self.threads:
            await trio.to_thread.run_sync(thread.join)
        await super().close()


class Own:
    """Asks the provider with a client of its own, and says what that cost."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def add(self, turns: Sequence[Any], at: datetime) -> dict[str, Any]:
        failing = fails()
        cost = 0.0
        for turn in turns:
            if failing:
                raise RuntimeError("it fails on purpose")
            body = {"model": "m", "messages": [{"role": "user", "content": NOTE}]}
            with httpx2.Client(trust_env=False) as client:
                response = client.post(f"{os.environ['PAYERS_URL']}/chat/completions", json=body)
            usage = response.raise_for_status().json()["usage"]
            cost += (10 * usage["prompt_tokens"] + 100 * usage["completion_tokens"]) / 1e6
            self.kept.append(turn)
        items = [{"text": turn.text, "turns": [turn.turn_id], "id": turn.turn_id} for turn in turns]
        return {"items": items, "cost_usd": cost}

    def search(self, query: str, k: int, at: datetime) -> list[dict[str, Any]]:
        return [{"text": turn.text, "turns": [turn.turn_id]} for turn in self.kept[-k:]]
