"""Runs whose answers a judge grades: what it is asked, round by round, and what comes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from tests.loopback import Server
from tests.scenarios.histories.conftest import BEAM_CHAT, BEAM_QUESTIONS, LOCOMO, Write

from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import Suite

pytestmark = pytest.mark.usefixtures("openai_key")

REPLY = "Some animal or other.\nThen another."


def answer(prompt: str) -> str:
    """An agent that always says the same, and a judge by what it is asked."""
    if "Answer with a JSON object" not in prompt:
        return REPLY
    if "the same event" in prompt:
        return json.dumps({"same": "Some animal" in prompt and "cat" in prompt})
    strict = "Be strict" in prompt
    return json.dumps({"why": "It is so.", "label": "WRONG" if strict else "CORRECT", "correct": True, "score": 0.5})


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(reply=answer).running() as server:
        yield server


def run(folder: Path, server: Server, name: str, data: Path, **parameters: Any) -> dict[str, Any]:
    chosen = Suite(name=name, tests=10, scenarios={name: {"data": str(data), **parameters}})
    settings = RunSettings(suite=chosen, span=2_000, agent=server.model(), judge=server.model())
    [outcome] = trio.run(lambda: play_plans([plan_run(settings, folder / "runs")]))
    assert outcome.error is None
    result: dict[str, Any] = json.loads((outcome.folder / "result.json").read_text("utf-8"))
    return result


def test_a_judge_decides_what_rules_leave_open(tmp_path: Path, server: Server, write: Write) -> None:
    path = write({"locomo10.json": LOCOMO}) / "locomo10.json"
    for grading, score in (("locomo", 1), ("locomo-strict", 0)):
        result = run(tmp_path / grading, server, "locomo", path, grading=grading)
        assert result["score"] == score, "the adversarial question does not count"
        assert {test["items"][0]["labels"]["by"] for test in result["tests"]} == {"judge"}
        assert [test["score"] for test in result["tests"]] == [score, 1]
        assert all(test["reason"] == "judged: It is so." for test in result["tests"])
        assert 0 <= result["metrics"]["locomo: f1"] < 0.5


def test_statements_and_the_order_of_events_are_judged_round_by_round(tmp_path: Path, server: Server, write: Write) -> None:
    order = {"question": "In which order?", "answer": "A cat, then a dog.", "rubric": ["a dog", "a cat"]}
    questions = BEAM_QUESTIONS | {"event_ordering": [order]}
    path = write({"chat.json": BEAM_CHAT, "probing_questions/probing_questions.json": questions})
    server.asked.clear()
    result = run(tmp_path, server, "beam", path)
    scores = {test["items"][0]["labels"]["kind"]: (test["score"], test["items"][0]["numbers"]) for test in result["tests"]}
    half = {"nuggets": 0.5, "whole nuggets": 0}
    assert scores["knowledge_update"] == scores["abstention"] == (0.5, half)
    # the first line is the cat, the second nothing: ranks 1 2 4 against 4 1 2, of three pairs one in order
    assert scores["event_ordering"] == (pytest.approx((1 - 1 / 3) / 2), {"tau": pytest.approx(1 / 3), "event f1": pytest.approx(0.5)})
    asked = [text for each in server.asked for _, text in each.texts[-1:] if "the same event" in text]
    assert len(asked) == len(set(asked)) == 4, "each line with each event, once"
