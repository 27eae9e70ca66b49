"""An adapter of Letta's archival memory, on your server or in Letta's cloud: one passage per turn, found by `archival-memory/search`.

Each conversation creates an agent there, only for its archive, and deletes it at the end.
"""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

LONGEST = 8_000
"""The maximum characters of a query. It is part of the URL, and servers limit its length."""


class Adapter:
    """A memory with one passage of an agent per turn. Set LETTA_API_KEY if the server needs a key."""

    read_only_search = True

    def __init__(self, models: Any, url: str = "http://127.0.0.1:8283", llm: str = "", embedding: str = "") -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise ValueError(f"url must begin with http:// or https://, got {url!r:.60}")
        self.url = url.rstrip("/")
        self.own = {name: value for name, value in (("model", llm), ("embedding", embedding)) if value}
        self.told: list[list[str]] = []
        self.agent = ""

    def ask(self, method: str, route: str, body: Any = None) -> Any:
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get("LETTA_API_KEY"):
            headers["Authorization"] = f"Bearer {key}"
        data = None if body is None else json.dumps(body).encode()
        try:
            with urlopen(Request(f"{self.url}/v1/{route}", data, headers, method=method)) as answer:  # noqa: S310 - checked above
                return json.loads(answer.read() or b"null")
        except HTTPError as error:
            raise RuntimeError(f"{method} {route.partition('?')[0]}: {error.code} {error.read().decode(errors='replace')[:200]}") from None

    def archive(self) -> str:
        """Return the route of the agent's archival memory, creating the agent on first use."""
        if not self.agent:
            self.agent = self.ask("POST", "agents/", {"name": "longspan", "include_base_tools": False, **self.own})["id"]
        return f"agents/{self.agent}/archival-memory"

    def add(self, turns: Any, at: datetime) -> list[dict[str, Any]]:
        return [self.put(turn.turn_id, turn.document, turn.sent_at.isoformat()) for turn in turns]

    def put(self, turn: str, text: str, said: str) -> dict[str, Any]:
        (made, *_) = self.ask("POST", self.archive(), {"text": text, "created_at": f"{said}Z", "tags": [f"turn:{turn}"]})
        self.told.append([turn, text, said])
        return {"id": made["id"], "text": text, "turns": [turn]}

    def search(self, query: str, k: int, at: datetime) -> list[dict[str, Any]]:
        found = self.ask("GET", f"{self.archive()}/search?{urlencode({'query': query[:LONGEST], 'top_k': k})}")["results"]
        return [{"id": each["id"], "text": each["content"], **self.known(each)} for each in found]

    def known(self, found: dict[str, Any]) -> dict[str, Any]:
        """Return the turn and time of a passage, from its tags and timestamp."""
        turns = [tag.partition(":")[2] for tag in found.get("tags") or () if tag.startswith("turn:")]
        said = datetime.fromisoformat(found["timestamp"].replace("Z", "+00:00"))
        plain = said.astimezone(timezone.utc).replace(tzinfo=None) if said.tzinfo else said  # noqa: UP017 - Python 3.8 has no UTC
        return {"turns": turns, "at": plain.isoformat()}

    def save(self, folder: Path) -> None:
        (folder / "told.json").write_text(json.dumps(self.told), "utf-8")

    def load(self, folder: Path) -> None:
        for turn, text, said in json.loads((folder / "told.json").read_text("utf-8")):
            self.put(turn, text, said)

    def reset(self) -> None:
        self.close()
        self.told = []

    def close(self) -> None:
        if self.agent:
            self.ask("DELETE", f"agents/{self.agent}")
            self.agent = ""
