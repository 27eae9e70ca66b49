"""Agents behind the A2A SDK's own server, and behind the ACP SDK.

Collected only if LONGSPAN_PROTOCOLS names a Python that has a2a-sdk[http-server], uvicorn and agent-client-protocol.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
import trio
from tests import forked

from longspan.agents.base import AgentError, Message, Reply
from longspan.agents.outside.a2a import A2aAgent

PYTHON = os.environ["LONGSPAN_PROTOCOLS"]


@pytest.fixture(scope="module", params=["1.0", "0.3"])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    command = [PYTHON, str(Path(__file__).with_name("a2a_server.py")), request.param]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        server.kill()


def talk(address: str, *texts: str) -> list[Reply]:
    async def ask() -> list[Reply]:
        agent = A2aAgent(address, A2aAgent.Options(timeout=20, timestamps=False))
        return [await agent.reply(Message(text, datetime(2024, 1, 1), f"c-{number}")) for number, text in enumerate(texts)]

    return trio.run(ask)


def test_its_contexts_keep_conversations(address: str) -> None:
    replies = talk(address, "alpha is red", "beta is blue", "alpha as a task", "beta")
    assert [reply.text for reply in replies] == ["Nothing yet.", "alpha is red", "alpha is red", "beta is blue"]
    assert len({str(reply.trace) for reply in replies}) == 1
    assert talk(address, "alpha")[0].text == "Nothing yet."


def test_its_tasks_may_need_input_or_fail(address: str) -> None:
    replies = talk(address, "alpha is red", "task with input", "about alpha", "alpha")
    assert [reply.text for reply in replies[1:3]] == ["Which one?", "alpha is red"]
    assert [bool((reply.trace or {})["server"].get("task")) for reply in replies] == [False, True, False, False]
    with pytest.raises(AgentError, match=r"its task is failed: I cannot\."):
        talk(address, "task to fail")


def test_it_is_ready_for_a_long_run(address: str, tmp_path: Path) -> None:
    play(f"a2a:{address}", tmp_path)


def test_a_program_is_ready_for_a_long_run(tmp_path: Path) -> None:
    play(f"acp:{PYTHON} {Path(__file__).with_name('acp_sdk_program.py')}", tmp_path)


def play(agent: str, where: Path) -> None:
    done = forked.longspan("check", "--agent", agent, where=where)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ready for a long run" in done.stdout
    done = forked.longspan("run", "--scenario", "colours", "--tests", "1", "--agent", agent, "--failed", "0", where=where)
    assert done.returncode == 0, done.stdout + done.stderr
