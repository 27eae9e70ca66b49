"""The judge: a model that decides what rules leave open. Against the vendor's library and a server on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.loopback import Hang, Say, Server, Status

from longspan.simulator.base.errors import InputError
from longspan.simulator.journal.answer_store import AnswerStore
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.gradebook.gradebook import Gradebook, grade_run
from longspan.simulator.results.judging.background import judge_run
from longspan.simulator.results.judging.cached_model import CachedModel
from longspan.simulator.results.judging.judge import LLMJudge
from longspan.simulator.running.planning import Plan, plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.subject.spending_limit import limit_of
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

pytestmark = pytest.mark.usefixtures("openai_key")

YES, NO = Say('{"holds": true, "why": "it says so"}'), Say('```json\n{"holds": false, "why": "it does not"}\n```')
SEED = 3
"""The server serves all tests of this file in turn."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server().running() as server:
        yield server


def does(server: Server, acts: Any) -> None:
    """What the server does next, and nothing else."""
    server.acts.clear()
    server.acts.extend(acts)


def planned(out: Path, judge: str | None, agent: str = "silent", scenario: str = "jokes", tests: int = 2) -> Plan:
    suite = load_suite("ltm").apply_changes([], [], [scenario], tests)
    return plan_run(RunSettings(suite=suite, span=2000, seed=SEED, agent=agent, isolated=True, judge=judge), out)


def judged(out: Path, server: Server, *acts: Any, **arguments: Any) -> RunFolder:
    """A run whose judge does so, answer by answer."""
    does(server, acts)
    (outcome,) = trio.run(play_plans, [planned(out, server.model(), **arguments)])
    assert outcome.error is None
    return RunFolder(outcome.folder)


def asked(server: Server) -> int:
    return len(server.asked)


def test_what_the_rules_leave_open_is_asked_and_counts(tmp_path: Path, server: Server) -> None:
    before = asked(server)
    run = judged(tmp_path, server, YES, NO)
    result = grade_run(run)
    assert sorted(test.score or 0.0 for test in result.tests) == [0, 1]
    assert all("judged: it" in test.reason for test in result.tests)
    assert asked(server) - before == 2
    assert result.costs["judge"].input_tokens > 0


def test_the_judge_is_told_the_reply_and_the_statement_and_nothing_of_who_replied(tmp_path: Path, server: Server) -> None:
    before = asked(server)
    judged(tmp_path, server, NO, NO, agent="notebook")
    for each in server.asked[before:]:
        (text,) = [text for role, text in each.texts if role == "user"]
        assert "Statement: The text tells or names this joke" in text
        assert "notebook" not in json.dumps(each.body)
        assert each.body["temperature"] == 0
        assert each.body["response_format"]["type"] == "json_schema"


def test_the_same_content_is_asked_once_also_in_a_later_scoring(tmp_path: Path, server: Server) -> None:
    run = judged(tmp_path, server, NO, NO)
    before = asked(server)
    trio.run(judge_run, Gradebook.of(run), CachedModel(server.model(), AnswerStore.of(run)))
    assert asked(server) == before
    trio.run(judge_run, Gradebook.of(run), CachedModel(server.model("gpt-4o-mini"), AnswerStore.of(run)))
    assert asked(server) > before, "another judge is asked"


def test_a_run_played_without_a_judge_is_judged_afterwards(tmp_path: Path, server: Server) -> None:
    (outcome,) = trio.run(play_plans, [planned(tmp_path, None)])
    run = RunFolder(outcome.folder)
    assert [test.score for test in grade_run(run).tests] == [0, 0], "without a judge the rules' guess counts"
    does(server, [YES, YES])
    trio.run(judge_run, Gradebook.of(run), CachedModel(server.model(), AnswerStore.of(run)))
    assert [test.score for test in grade_run(run).tests] == [1, 1]


RUBBISH = [Say("I would rather not say."), Say(""), Say('{"holds": "perhaps"}'), Say('{"holds": true}'), Status(400, "no")]


@pytest.mark.parametrize("rubbish", RUBBISH)
def test_a_judge_that_fails_leaves_the_test_unscored_and_says_so(tmp_path: Path, server: Server, rubbish: Any) -> None:
    run = judged(tmp_path, server, *[rubbish] * 12, tests=1)
    result = grade_run(run)
    (test,) = result.tests
    assert (test.status, test.score) == ("unscored", None)
    assert "undecided: the judge" in test.reason
    assert (result.score, result.score_bounds) == (None, (0, 1))
    does(server, [YES])
    trio.run(judge_run, Gradebook.of(run), CachedModel(server.model(), AnswerStore.of(run)))
    assert grade_run(run).score == 1, "asked again, it may decide"


def test_a_verdict_that_a_test_waits_for_is_an_event_and_a_failed_one_leaves_the_test_unscored(tmp_path: Path, server: Server) -> None:
    scenario = "python:tests.rig:Waiting"
    for acts, status in (((YES,), "scored"), ((Say("hm"),), "unscored")):
        does(server, acts)
        suite = load_suite("ltm").apply_changes([], [], [scenario], 1)
        each = plan_run(RunSettings(suite=suite, span=2000, seed=0, agent="silent", isolated=True, judge=server.model()), tmp_path)
        (outcome,) = trio.run(play_plans, [each])
        run = RunFolder(outcome.folder)
        (verdict,) = [json.loads(line) for line in run.journal(next(iter(each.tests))).read_text().splitlines() if '"verdict"' in line]
        assert verdict["by"].endswith("prompt statement 1")
        assert grade_run(run).tests[0].status == status


def test_a_limit_of_dollars_holds_for_the_judge_too(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"--max-cost: agent openai/gpt-4o.*the price of 127.0.0.1:\d+/gpt-4o is unknown"):
        trio.run(lambda: play_plans([planned(tmp_path, server.model())], limit=limit_of(1)))
    monkeypatch.setattr(
        "longspan.simulator.subject.ledger.price_usage", lambda model, usage: 1e-6 * (usage.input_tokens + usage.output_tokens)
    )
    does(server, [NO, NO])
    (outcome,) = trio.run(lambda: play_plans([planned(tmp_path, server.model())], limit=limit_of(1e-7)))
    assert "exceed the limit" in str(outcome.error)
    assert not AnswerStore.of(RunFolder(outcome.folder)).entries()


def test_who_cannot_judge_is_refused_at_the_door(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--judge silent: this kind of agent cannot judge; name a model"):
        planned(tmp_path, "silent")
    with pytest.raises(InputError, match=r"--judge silent: this kind of agent cannot judge; name a model"):
        CachedModel("silent", AnswerStore(tmp_path))  # and not that it has no option `temperature`


def test_judging_stops_with_the_run(tmp_path: Path, server: Server) -> None:
    does(server, [Hang()] * 4)

    async def stopped() -> None:
        with trio.move_on_after(1):
            await play_plans([planned(tmp_path, server.model())])
            raise AssertionError("it went on without its judge")

    trio.run(stopped)
    does(server, [])


ODD = ["{", "[[[[", '{"holds": 1, "why": ""}', '{"holds": true', "null", '{"why": {"a": []}, "holds": false}']


@settings(max_examples=60)
@given(st.text(max_size=60) | st.sampled_from(ODD))
def test_any_answer_is_a_verdict(server: Server, tmp_path_factory: pytest.TempPathFactory, answer: str) -> None:
    (tmp_path_factory.getbasetemp() / "judged").mkdir(exist_ok=True)
    judge = LLMJudge(CachedModel(server.model(), AnswerStore(tmp_path_factory.mktemp("run"))))
    does(server, [Say(answer)])
    verdict = trio.run(judge.judge, "It rains.", answer)
    assert verdict.holds in (True, False, None)
    assert verdict.failed == (verdict.holds is None)
    assert isinstance(verdict.why, str)
