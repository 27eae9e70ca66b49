"""Costs from end to end, with a vendor's library, a loopback server and test prices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from tests.loopback import Say, Server, Status

from longspan.simulator.base.errors import StoppedError
from longspan.simulator.contract.messages import Usage
from longspan.simulator.journal import events
from longspan.simulator.journal.journal import read_journal
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.gradebook.gradebook import grade_run
from longspan.simulator.running.planning import Plan, plan_run
from longspan.simulator.running.runner import play_plans, resume_run
from longspan.simulator.subject.spending_limit import limit_of
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

WORST = 1e-6 * 2500
"""The worst-case cost of a turn: a context of 2k, the longest answer, and what a provider may add."""

SUITE = load_suite("ltm").apply_changes([], [], ["colours", "shopping"], 1)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server().running() as server:
        yield server


@pytest.fixture(autouse=True)
def prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A price of $1 per million tokens for any model, because no price list has the test server."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing")
    monkeypatch.setattr("longspan.simulator.subject.ledger.price_usage", lambda model, usage: dollars(usage))


def dollars(usage: Usage) -> float:
    return 1e-6 * (usage.input_tokens + usage.output_tokens)


def planned(server: Server, out: Path, seed: int = 0) -> Plan:
    agent = f"openai/gpt-4o?context=2k&max_tokens=100&base_url={server.base_url('openai')}"
    return plan_run(RunSettings(suite=SUITE, span=2000, seed=seed, agent=agent), out)


def cost(folder: Path) -> float:
    return grade_run(RunFolder(folder)).costs["agent"].cost_usd or 0


def replies(run: RunFolder) -> list[events.Reply]:
    return [event for event in read_journal(run.journal("main")) if isinstance(event, events.Reply)]


def test_each_reply_is_priced_and_the_sums_are_in_the_results(server: Server, tmp_path: Path) -> None:
    (outcome,) = trio.run(play_plans, [planned(server, tmp_path)])
    run = RunFolder(outcome.folder)
    asked = [reply for reply in replies(run) if reply.asked]
    assert all(reply.usage and reply.cost_usd for reply in asked)
    assert not any(reply.usage or reply.cost_usd for reply in replies(run) if not reply.asked)
    spent = grade_run(run).costs["agent"]
    assert spent.cost_usd == pytest.approx(1e-6 * (spent.input_tokens + spent.output_tokens))
    assert spent.cost_usd == pytest.approx(sum((reply.cost_usd or {})["agent"] or 0 for reply in asked))


def test_a_run_stops_before_its_limit_and_resumes_with_a_higher_one(server: Server, tmp_path: Path) -> None:
    whole = trio.run(play_plans, [planned(server, tmp_path / "whole")])[0]
    limit = 0.6 * cost(whole.folder)
    (stopped,) = trio.run(lambda: play_plans([planned(server, tmp_path / "short")], limit=limit_of(limit)))
    assert isinstance(stopped.error, StoppedError)
    assert "exceed the limit of $0.0" in str(stopped.error)
    run = RunFolder(stopped.folder)
    assert limit - WORST <= cost(run.path) <= limit
    again = trio.run(lambda: resume_run(run, run.manifest.agent, limit=limit_of(limit)))
    assert isinstance(again.error, StoppedError), "what it has cost so far counts"
    resumed = trio.run(lambda: resume_run(run, run.manifest.agent, limit=limit_of(10)))
    assert resumed.error is None
    texts = [[reply.text for reply in replies(RunFolder(outcome.folder))] for outcome in (whole, resumed)]
    assert texts[0] == texts[1]


def test_runs_share_one_limit(server: Server, tmp_path: Path) -> None:
    limit = 0.02
    outcomes = trio.run(lambda: play_plans([planned(server, tmp_path, seed) for seed in range(3)], limit=limit_of(limit)))
    assert all(isinstance(outcome.error, StoppedError) for outcome in outcomes)
    assert limit - WORST <= sum(cost(outcome.folder) for outcome in outcomes) <= limit


def test_a_turn_that_fails_keeps_everything_and_costs_nothing(server: Server, tmp_path: Path) -> None:
    server.script([Say("OK.")] * 10 + [Status(401, "who are you")] * 5)
    (outcome,) = trio.run(play_plans, [planned(server, tmp_path)])
    result = grade_run(RunFolder(outcome.folder))
    assert {test.status for test in result.tests} <= {"agent_error", "scored"}
    assert "agent_error" in {test.status for test in result.tests}
    assert result.score is None
    assert result.score_bounds[0] < result.score_bounds[1]
    server.acts.clear()
    resumed = trio.run(lambda: resume_run(RunFolder(outcome.folder), RunFolder(outcome.folder).manifest.agent))
    assert resumed.error is None
    assert resumed.result is not None
    assert resumed.result.score is not None
