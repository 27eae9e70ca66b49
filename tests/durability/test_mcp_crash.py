"""A model with an MCP server's tools survives being killed: its server is restored, from its folder or by its calls."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from longspan.simulator.running.runner import play_plans
from tests.durability.test_crash import crash, entries, only, planned, survives
from tests.loopback import Act, Say, Server, Use
from tests.loopback.apis import Block

SPAN = 2_000
SERVERS = {
    "folder": f"{sys.executable} {Path(__file__).parents[1]}/agents/mcp_memory.py {{folder}}/facts.json",
    "calls": f"{sys.executable} -S {Path(__file__).parents[1]}/agents/mcp_rude.py remember",
}
"""A real server whose files are saved, and one without files."""


def decide(blocks: list[Block]) -> Act:
    """Store every message and look up similar ones, so that each reply depends on everything stored."""
    last = blocks[-1]
    if last.role == "tool":
        return Say(" ".join(block.text for block in blocks[-2:])[-400:])
    return Use((("recall", {"query": last.text[-60:]}), ("remember", {"fact": last.text[-60:]})))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(decide=decide).running() as running:
        yield running


def spec(server: Server, command: str) -> str:
    return f"mcp:{command}?model=openai/m&base_url={server.base_url('openai')}&context=1500"


def comparable(journal: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a journal without what the provider's cache decides."""
    for entry in journal:
        entry.get("usage", {}).pop("cached_tokens", None)
        for call in entry.get("trace", {}).get("calls", []):
            call["usage"].pop("cached_tokens")
    return journal


@pytest.mark.parametrize("kept", SERVERS)
def test_a_run_killed_at_an_event_is_resumed_to_the_same_journal(kept: str, server: Server, tmp_path: Path) -> None:
    agent = spec(server, SERVERS[kept])
    (outcome,) = trio.run(lambda: play_plans([planned(tmp_path / "whole", agent, SPAN, 1)]))
    assert outcome.error is None
    expected = comparable(entries(only(tmp_path / "whole")))
    assert sum(len(entry.get("trace", {}).get("read", [])) for entry in expected) > 20, "what was stored is found"
    saved = next(place for place, entry in enumerate(expected) if entry["type"] == "snapshot")
    replies = [place for place, entry in enumerate(expected) if entry["type"] == "reply" and entry["asked"] and place > saved]
    assert crash(tmp_path / "killed", agent, SPAN, 1, kill_at=replies[2])
    assert comparable(survives(tmp_path / "killed", agent)) == expected
