"""Agents behind ACP, as programs."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import trio
from tests.durability.test_crash import crash, only, survives

from longspan.agents.base import AgentError, InputError, Message, Reply
from longspan.agents.outside.acp import AcpAgent
from longspan.simulator.contract.agent import can_observe, can_rejoin, can_repeat_turn, can_rewind, has_snapshots
from longspan.simulator.running.runner import describe_catch_up
from longspan.simulator.suite.agent_spec import AgentSpec

PROGRAM = Path(__file__).with_name("acp_program.py")


def agent(folder: Path | str = "", **options: Any) -> AcpAgent:
    return AcpAgent(f"{sys.executable} -S {PROGRAM} {folder}", AcpAgent.Options(**{"timeout": 20, "timestamps": False, **options}))


def message(text: str, number: int = 1) -> Message:
    return Message(text, datetime(2024, 1, 1, 9, 0), f"c-{number}")


def talk(asked: AcpAgent, *texts: str) -> list[Reply]:
    async def ask() -> list[Reply]:
        try:
            return [await asked.reply(message(text, number)) for number, text in enumerate(texts)]
        finally:
            await asked.close()

    return trio.run(ask)


def test_its_session_keeps_the_conversation() -> None:
    replies = talk(agent(), "one", "two")
    assert [reply.text for reply in replies] == ["1 said", "2 said"]
    assert replies[1].trace == {"server": {"id": "s1"}, "thinking": "Hm."}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("permission", json.dumps({"outcome": {"outcome": "selected", "optionId": "no"}})),
        ("bare permission", json.dumps({"outcome": {"outcome": "cancelled"}})),
        ("file", "-32601"),
    ],
)
def test_it_gets_no_permission_and_no_files(text: str, said: str) -> None:
    assert talk(agent(), text)[0].text == said


def test_a_refusal_is_a_reply() -> None:
    assert talk(agent(), "refuse")[0].refused


def test_a_program_that_ends_is_reported() -> None:
    with pytest.raises(AgentError, match=r"session/prompt: exited with status 3 before it answered; .*: out of luck$"):
        talk(agent(), "die")


def test_a_program_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InputError, match="program 'no-such-program' does not exist"):
        AcpAgent("no-such-program")


def test_a_new_conversation_has_a_program_of_its_own() -> None:
    asked = agent()

    async def begin_again() -> list[str]:
        try:
            before = await asked.reply(message("one"))
            await asked.reset()
            return [before.text, (await asked.reply(message("one"))).text]
        finally:
            await asked.close()

    assert trio.run(begin_again) == ["1 said", "1 said"]


def test_it_continues_a_session_that_it_can_load(tmp_path: Path) -> None:
    (told,) = talk(agent(tmp_path), "one")

    async def resume(asked: AcpAgent) -> str:
        try:
            return (await asked.reply(message("two"))).text if await asked.rejoin(message("one"), told) else "cannot"
        finally:
            await asked.close()

    assert trio.run(resume, agent(tmp_path)) == "2 said"
    assert trio.run(resume, agent()) == "cannot"
    (tmp_path / "s1").unlink()
    with pytest.raises(AgentError, match=r"session/load: failed: no such session$"):
        trio.run(resume, agent(tmp_path))


def test_it_says_what_it_can_do(tmp_path: Path) -> None:
    async def able(asked: AcpAgent) -> bool:
        await asked.start()
        rejoins = can_rejoin(asked)
        assert not any(can(asked) for can in (can_observe, has_snapshots, can_rewind, can_repeat_turn))
        await asked.close()
        return rejoins

    assert trio.run(able, agent(tmp_path))
    assert not trio.run(able, agent())


@pytest.mark.parametrize("loads", [True, False])
def test_a_killed_run_continues_in_its_session_or_is_told_again(loads: bool, tmp_path: Path) -> None:
    (sessions := tmp_path / "sessions").mkdir()
    spec = f"acp:{sys.executable} -S {PROGRAM} {sessions if loads else ''}?timeout=20"
    assert crash(tmp_path / "runs", spec, 2_000, 1, kill_at=40)
    run = only(tmp_path / "runs")
    turns = run.journal("main").read_bytes().count(b'"type":"reply"')
    said, again = trio.run(lambda: describe_catch_up(run, AgentSpec.parse(spec)))
    assert (again, f"{turns} turns are sent to it again" in said) == (not loads, not loads)
    replies = [entry for entry in survives(tmp_path / "runs", spec) if entry["type"] == "reply"]
    assert len(replies) > turns > 0
    if loads:
        (kept,) = sessions.iterdir()
        assert len(json.loads(kept.read_text())) - len(replies) in (0, 1), "the turn whose answer was lost may be there twice"
