"""Servers that keep the conversation: what a kill, an experiment and a question about a history find there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from longspan.simulator.base.errors import InputError
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.result import Result, read_result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import describe_catch_up, play_plans
from longspan.simulator.suite.agent_spec import AgentSpec
from longspan.simulator.suite.settings import Branch, RunSettings
from longspan.simulator.suite.suite import Suite
from tests.durability.test_crash import crash, entries, only, planned, survives
from tests.loopback import Stateful
from tests.sealing import nameless

SPECS = {
    "responses": "responses/m?base_url={}/v1&price_in=1&price_cached=0.1&price_out=4",
    "session": "openai/m?base_url={}/v1&history=server",
    "a2a": "a2a:{}",
}


@pytest.fixture
def server() -> Iterator[Stateful]:
    with Stateful().running() as running:
        yield running


def spec(kind: str, server: Stateful) -> str:
    return SPECS[kind].format(server.address)


def result_of(plan: Any) -> tuple[RunFolder, Result]:
    (outcome,) = trio.run(lambda: play_plans([plan]))
    assert outcome.error is None
    assert outcome.result is not None
    return RunFolder(outcome.folder), outcome.result


def replies(run: RunFolder, conversation: str = "main") -> list[dict[str, Any]]:
    return [entry for entry in nameless(run.journal(conversation)) if entry["type"] == "reply"]


def states(turns: Iterable[dict[str, Any]]) -> list[str]:
    """Return the ids of the server's states in the traces of turns."""
    return [turn["trace"]["server"]["id"] for turn in turns if "server" in turn.get("trace", {})]


def test_a_killed_run_over_the_responses_api_has_the_results_of_an_uninterrupted_one(server: Stateful, tmp_path: Path) -> None:
    agent = spec("responses", server)
    run, expected = result_of(planned(tmp_path / "whole", agent, 2_000, 1))
    whole = entries(run)
    asked = [place for place, entry in enumerate(whole) if entry["type"] == "reply" and entry["asked"]]
    assert len(set(states(replies(run)))) == len(asked) > 10
    for place, again in ((asked[4], True), (asked[-2] - 1, False)):  # with an answer that only the server has, and without
        out = tmp_path / str(place)
        assert crash(out, agent, 2_000, 1, kill_at=place)
        effort = trio.run(lambda out=out: describe_catch_up(only(out), AgentSpec.parse(agent)))
        assert effort == (f"{agent} continues on its server and observes the 0 turns after that", False)
        assert survives(out, agent) == whole
        resumed = read_result(only(out))
        assert resumed is not None
        assert resumed.model_copy(update={"run": expected.run, "spending": expected.spending}) == expected
        assert (resumed.spending is not None and resumed.spending.again_usd > 0) == again, "an answer that was lost is paid for twice"


@pytest.mark.parametrize("kind", ["session", "a2a"])
def test_a_killed_run_continues_in_its_conversation_and_marks_what_was_sent_twice(kind: str, server: Stateful, tmp_path: Path) -> None:
    agent = spec(kind, server)
    run, _ = result_of(planned(tmp_path / "whole", agent, 2_000, 1))
    whole = entries(run)
    assert len(states(replies(run))) == len(replies(run)), "also turns whose replies are dropped"
    (said,) = (said for said in server.sessions.values())
    told = [place for place, entry in enumerate(whole) if entry["type"] == "reply" and not entry["asked"]]
    for place in (told[0], told[-1] + 2):  # a dropped reply, and an asked turn, that only the server has
        server.sessions.clear()
        out = tmp_path / str(place)
        assert crash(out, agent, 2_000, 1, kill_at=place)
        ((id, lost),) = ((id, len(said)) for id, said in server.sessions.items())
        survives(out, agent)
        assert set(states(replies(only(out)))) == set(server.sessions) == {id}
        users = [text for role, text in server.sessions[id] if role == "user"]
        assert len(users) == len(said) // 2 + 1, "it is twice in the server's conversation"
        assert users[lost // 2] == users[lost // 2 - 1]
        assert [turn["turn"] for turn in replies(only(out)) if turn.get("repeated")] == [lost // 2 - 1]


def experiments(agent: str, **more: Any) -> RunSettings:
    suite = Suite(name="codes", tests=2, scenarios={"python:tests.simulator.test_experiments:Twice": {}})
    return RunSettings(suite=suite, span=2_000, seed=3, agent=agent, **more)


def test_experiments_begin_from_the_state_that_they_share(server: Stateful, tmp_path: Path) -> None:
    agent = spec("responses", server)
    run, result = result_of(plan_run(experiments(agent, twins=1, lesion=500, control=True), tmp_path))
    assert (result.twins, result.lesions, result.control) != (None, None, None)
    before = {turn["turn"]: turn for turn in replies(run)}
    for id, experiment in run.manifest.experiments.items():
        if not experiment.shares:
            continue
        fork, own = nameless(run.journal(id))[0]["trunk"]["turn"], replies(run, id)
        first = next(state for state in states(own) if state not in states(before.values()))
        shared = states(turn for number, turn in before.items() if number < fork)
        expected = shared[-1] if experiment.kind == "twin" else None
        assert server.continued[first] == expected, "the state at its needle, or nothing, since it must not know what came before"


@pytest.mark.parametrize("kind", ["session", "a2a"])
def test_without_a_way_back_there_are_controls_and_no_twins(kind: str, server: Stateful, tmp_path: Path) -> None:
    agent = spec(kind, server)
    with pytest.raises(InputError, match="has no observe, nor save and load"):
        plan_run(experiments(agent, twins=1), tmp_path)
    with pytest.raises(InputError, match="has no observe, so that"):
        plan_run(experiments(agent, lesion=500), tmp_path)
    _, result = result_of(plan_run(experiments(agent, control=True), tmp_path))
    assert result.control is not None
    assert len(server.sessions) == 3, "each conversation is its own"


def diary(agent: str, branch: Branch = "on") -> RunSettings:
    suite = Suite(name="diary", tests=1, scenarios={"python:tests.diary:Diary": {"entries": 12}})
    return RunSettings(suite=suite, span=2_000, seed=4, agent=agent, branch=branch)


def test_each_question_about_a_history_is_asked_from_the_state_at_its_end(server: Stateful, tmp_path: Path) -> None:
    _, result = result_of(plan_run(diary(spec("responses", server)), tmp_path))
    assert result.score == 1
    sent = [body for _, _, body in server.asked]
    assert [(len(body["input"]), "previous_response_id" in body) for body in sent] == 4 * [(25, False)]


@pytest.mark.parametrize("kind", ["session", "a2a"])
def test_a_conversation_that_cannot_go_back_is_told_again_for_each_question(kind: str, server: Stateful, tmp_path: Path) -> None:
    agent = spec(kind, server)
    refused = "only its present state, so that the 4 questions .*: --branch off .* --branch retell"
    with pytest.raises(InputError, match=refused):
        result_of(plan_run(diary(agent), tmp_path))
    ways: list[tuple[Branch, int]] = [("off", 1), ("retell", 4)]
    for branch, conversations in ways:
        server.sessions.clear()
        _, result = result_of(plan_run(diary(agent, branch), tmp_path / branch))
        assert result.score == 1 or branch == "off", "the questions are in its conversation, too"
        assert len(server.sessions) == conversations
