"""mcp: models that use a real MCP server's tools, each through its vendor's own dialect."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import trio
from tests.loopback import Act, Say, Server, Use
from tests.loopback.apis import Block

from longspan.agents.base import Message
from longspan.agents.tools.agent import McpAgent
from longspan.simulator.agent_spec import AgentSpec, make_agent

MEMORY = Path(__file__).parent / "mcp_memory.py"
KINDS = ("openai", "anthropic", "google")
START = datetime(2024, 1, 1, 9)


def decide(blocks: list[Block]) -> Act:
    """Act like a model with a memory: store statements, look up questions, and answer with what is found."""
    last = blocks[-1]
    if last.role == "tool":
        return Say("Noted." if last.text.startswith("Stored") else f"I know: {last.text}")
    return (
        Use((("recall", {"query": last.text.removesuffix("?")}),)) if last.text.endswith("?") else Use((("remember", {"fact": last.text}),))
    )


def message(text: str, turn: int) -> Message:
    return Message(text, START + turn * timedelta(seconds=30), f"t-{turn}")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return Server(decide=decide)


def spec(server: Server, kind: str = "openai", command: str = f"{MEMORY} {{folder}}/facts.json", **options: object) -> str:
    given = {"base_url": server.base_url(kind), "timestamps": "false", "context": "3k"} | options
    return f"mcp:{sys.executable} {command}?model={kind}/m&" + "&".join(f"{name}={value}" for name, value in given.items())


@asynccontextmanager
async def talking(spec: str) -> AsyncIterator[McpAgent]:
    agent = make_agent(AgentSpec.parse(spec))
    assert isinstance(agent, McpAgent)
    try:
        yield agent
    finally:
        await agent.close()


def run(server: Server, body: Callable[[], Awaitable[None]]) -> None:
    with server.running():
        trio.run(body)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_stores_and_looks_up_by_itself(kind: str, server: Server) -> None:
    async def body() -> None:
        async with talking(spec(server, kind)) as agent:
            told = await agent.reply(message("The tide turns at nine.", 1))
            asked = await agent.reply(message("When is the tide?", 2))
        assert (told.text, asked.text) == ("Noted.", "I know: The tide turns at nine.")
        assert told.trace is not None
        assert asked.trace is not None
        (stored,) = told.trace["written"]
        assert stored["text"] == "The tide turns at nine."
        assert told.trace["read"] == []
        assert asked.trace["written"] == []
        assert asked.trace["read"] == [stored | {"turns": ["t-1"]}]
        assert asked.trace["tools"] == [{"tool": "recall", "arguments": {"query": "When is the tide"}, "result": "The tide turns at nine."}]
        assert told.usage is not None
        first, second = (asked.used for asked in server.asked[:2] if asked.used)
        assert told.usage.input_tokens == first.prompt + second.prompt, "usage is that of all rounds"
        assert "Remember what the user tells you." in server.asked[0].texts[0][1], "the server's instructions"

    run(server, body)
