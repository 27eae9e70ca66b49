"""The examples of memories: each finds what it was told, is saved, and finds the same after it is restored."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trio
from tests.environments import ROOT

from longspan.agents.base import Message
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent

EXAMPLES = ROOT / "examples"
START = datetime(2024, 5, 7, 18)


def message(number: int, text: str) -> Message:
    return Message(text, START + timedelta(minutes=number), f"t{number}")


@pytest.fixture
def node() -> Iterator[str]:
    """The memory in JavaScript, as a server."""
    with subprocess.Popen(["node", EXAMPLES / "node" / "memory.js", "0"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/"
        server.kill()


@pytest.mark.parametrize("folder", ["hybrid", "known", "mcp-server", "node"])
def test_an_example_remembers_and_is_restored(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(EXAMPLES / folder)
    monkeypatch.setattr("sys.path", list(sys.path))
    named = {
        "hybrid": "python:hybrid_memory:Hybrid?embedder=hash",
        "known": "python:known_memory:Known?hours=1",
        "mcp-server": f"mcp:{sys.executable} server.py {{folder}}/memory.db",
    }
    kind = named.get(folder) or request.getfixturevalue("node")

    def made() -> Any:
        return make_agent(AgentSpec.parse(f"memory/{kind}{'&' if '?' in kind else '?'}answerer=none&batch=turn&k=5"))

    async def scenario() -> None:
        one, other = made(), made()
        try:
            for number in range(12):
                await one.observe(message(number, f"Person {number} paints boats in colour {number % 5}."), "I see.")
            await one.observe(message(12, "Brunhilde keeps an axolotl."), "")
            reply = await one.reply(message(13, "Who keeps an axolotl: Brunhilde?"))
            assert reply.trace["read"][0]["turns"] == ["t12"]
            assert len(reply.trace["read"]) <= 5
            await one.save(tmp_path)
            await other.load(tmp_path)
            question = message(14, "Brunhilde?")
            assert (await one.reply(question)).trace["read"] == (await other.reply(question)).trace["read"] != []
        finally:
            await one.close()
            await other.close()

    trio.run(scenario)
