from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
import trio

from longspan.agents.base import AgentError, BaseAgent, Message
from longspan.agents.reference.oracle import Oracle
from longspan.agents.reference.silent import Silent
from longspan.agents.reference.stateless import Stateless
from longspan.scenarios.ltm.colours import Colours
from longspan.scenarios.ltm.wording import Wording
from longspan.simulator.contract.agent import Agent, IdealReplyAgent, has_snapshots


def _message(text: str, turn: str = "1") -> Message:
    return Message(text, datetime(2024, 5, 1, 9, 0), turn)


def test_oracle_gives_the_prompted_reply() -> None:
    async def play() -> None:
        oracle = Oracle()
        assert isinstance(oracle, IdealReplyAgent)
        oracle.prompt("Blue.")
        assert (await oracle.reply(_message("What colour?"))).text == "Blue."
        assert (await oracle.reply(_message("What colour?"))).text == "Blue.", "the same turn again is the same request again"
        oracle.prompt("")
        assert (await oracle.reply(_message("And now?", "2"))).text == ""

    trio.run(play)


def test_oracle_without_a_prompt_is_an_error() -> None:
    async def play() -> None:
        oracle = Oracle()
        with pytest.raises(AgentError, match="no ideal reply for turn 1"):
            await oracle.reply(_message("What colour?"))
        oracle.prompt("Blue.")
        await oracle.reply(_message("What colour?"))
        with pytest.raises(AgentError, match="no ideal reply for turn 2"):
            await oracle.reply(_message("And now?", "2"))
        await oracle.reset()
        with pytest.raises(AgentError, match="no ideal reply for turn 1"):
            await oracle.reply(_message("What colour?"))

    trio.run(play)


def test_silent_always_says_ok(tmp_path: Path) -> None:
    async def play() -> None:
        silent = Silent()
        assert not isinstance(silent, IdealReplyAgent)
        for text in ("", "Hello.", "What is my name?"):
            await silent.observe(_message(text), "Well.")
            assert (await silent.reply(_message(text))).text == "OK."
        await silent.save(tmp_path)
        await silent.load(tmp_path)
        await silent.reset()

    trio.run(play)


@pytest.mark.parametrize("agent", [Oracle(), Silent()])
def test_they_are_agents(agent: BaseAgent) -> None:
    assert isinstance(agent, Agent)
    assert not has_snapshots(agent), "there is nothing to save"


def test_stateless_answers_each_message_alone(tmp_path: Path) -> None:
    async def play() -> None:
        questions = Wording("colours").all("question")
        alone = [(await Stateless().reply(_message(text))).text for text in questions]
        assert alone == [Colours().guess(text) for text in questions]
        one = Stateless()
        for text, guess in zip(questions, alone, strict=True):
            await one.observe(_message("My favourite colour has become blue."), "OK.")
            assert (await one.reply(_message("My favourite colour has become red."))).text == "OK."
            assert (await one.reply(_message(text))).text == guess
        for text in ("", "Hello.", "What is my name?", "x" * 100_000, "The " * 30_000):
            assert (await one.reply(_message(text))).text == "OK."
        await one.save(tmp_path)
        assert list(tmp_path.iterdir()) == []

    trio.run(play)


def test_a_guess_that_fails_is_told_with_its_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    def guess(self: Colours, message: str) -> str:
        raise ValueError("no idea")

    monkeypatch.setattr(Colours, "guess", guess)
    with pytest.raises(AgentError, match=r"^stateless: the guess of scenario colours failed: ValueError: no idea$"):
        trio.run(Stateless().reply, _message("Hello."))
