"""openai/MODEL against an independent server: llama-cpp-python's, with a tiny model of random weights."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path

import pytest
import trio
from tests.conftest import skip

from longspan.agents.base import Message, Reply, Usage
from longspan.simulator.contract.agent import Agent
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

WINDOW = 2048


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server in a process of its own."""
    needed = ("llama_cpp", "gguf", "fastapi", "sse_starlette", "starlette_context", "pydantic_settings", "uvicorn")
    if missing := [name for name in needed if find_spec(name) is None]:
        skip(f"llama-cpp-python's server cannot be started without {', '.join(missing)}")
    from tests.tiny_gguf import write_model

    path = write_model(tmp_path_factory.mktemp("model") / "tiny.gguf")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = {"model": path, "host": "127.0.0.1", "port": port, "n_ctx": WINDOW, "n_threads": 1, "verbose": False}
    arguments = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "llama_cpp.server", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        started = next((line for line in process.stderr if "Uvicorn running on" in line), None)
        try:
            assert started is not None, "the server ended"
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()


def agent(server: str, options: str = "") -> Agent:
    return make_agent(AgentSpec.parse(f"openai/tiny?base_url={server}&temperature=0&max_tokens=12{options}"))


def converse(made: Agent, turns: int) -> list[Reply]:
    async def play() -> list[Reply]:
        start = datetime(2024, 1, 1, 9)
        return [
            await made.reply(Message(f"This is line {number} about the city.", start + number * timedelta(seconds=30), f"c-{number}"))
            for number in range(turns)
        ]

    return trio.run(play)


@pytest.mark.parametrize("stream", ["", "&stream=true"], ids=["plain", "stream"])
def test_it_answers(server: str, stream: str) -> None:
    for reply in converse(agent(server, f"&context=1k{stream}"), 3):
        assert reply.text
        assert reply.usage is not None
        assert reply.usage.input_tokens > 20
        assert 0 < reply.usage.output_tokens <= 20


def test_a_window_smaller_than_the_context_is_discovered(server: str) -> None:
    used = [reply.usage or Usage() for reply in converse(agent(server, "&context=8k"), 50)]
    sizes = [usage.input_tokens for usage in used]
    assert WINDOW // 2 < max(sizes) <= WINDOW
    assert sizes != sorted(sizes), "a block was dropped"


def test_conversations_at_once_are_all_answered(server: str, tmp_path: Path) -> None:
    suite = load_suite("ltm").apply_changes([], [], ["colours", "name_list", "jokes"], 2)
    spec = f"openai/tiny?base_url={server}&temperature=0&max_tokens=12&context=1k"
    planned = plan_run(RunSettings(suite=suite, span=2000, seed=0, agent=spec, isolated=True), tmp_path)
    (outcome,) = trio.run(lambda: play_plans([planned]))
    assert outcome.error is None
    assert outcome.result is not None
    assert {test.status for test in outcome.result.tests} == {"scored"}
