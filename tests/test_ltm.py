"""The LTM suite as a whole: properties at every span, for every agent."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import fmean

import pytest
import trio
from benchmarks.interleaving import woven

from longspan.agents.base import BaseAgent
from longspan.simulator.contract.messages import Message, Reply
from longspan.simulator.contract.script import Placement
from longspan.simulator.journal import events
from longspan.simulator.journal.journal import read_journal
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.journal.transcript import Transcript
from longspan.simulator.results.result import Result
from longspan.simulator.running.planning import Plan, plan_run
from longspan.simulator.running.player import Outcome
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite, make_tests
from tests.rig import Babbler, setting
from tests.rig import play as play_tests
from tests.sealing import nameless

SPANS = [2_000, 32_000, 120_000, 200_000, 500_000]
LONG = 120_000
"""Spans from here on are played with one seed: shorter ones show that seeds make no difference. LONGSPAN_SEEDS=all plays as many."""
TOKENS = {2_000: 8_600, 32_000: 88_000, 120_000: 335_000, 200_000: 551_000, 500_000: 1_360_000}
"""The length of a conversation with a silent agent in 0.2, which the schedule followed."""


def run(tmp_path: Path, *plans: Plan) -> list[Result]:
    return [outcome.result for outcome in trio.run(lambda: play_plans(plans))]


def planned(span: int, seed: int, agent: str, out: Path, *, isolated: bool = False, placement: Placement = "spread") -> Plan:
    return plan_run(RunSettings(suite=load_suite("ltm"), span=span, seed=seed, agent=agent, isolated=isolated, placement=placement), out)


def converse(span: int, seed: int, agent: BaseAgent, path: Path, placement: Placement = "spread") -> Transcript:
    return play_tests(_tests(seed, placement), agent, setting(span, seed=seed, placement=placement), path)


def seeds(span: int, count: int) -> range:
    return range(count if span < LONG or os.environ.get("LONGSPAN_SEEDS") == "all" else 1)


Played = Callable[..., Outcome]
"""Plays an agent at a span, a seed and a placement, once for all tests."""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    @cache
    def outcome(agent: str, span: int, seed: int, placement: Placement = "spread") -> Outcome:
        (found,) = trio.run(play_plans, [planned(span, seed, agent, tmp_path_factory.mktemp(agent), placement=placement)])
        return found

    return outcome


@cache
def _tests(seed: int, placement: Placement):  # type: ignore[no-untyped-def]
    return make_tests(load_suite("ltm"), seed, placement)


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize(("placement", "count"), [("spread", 3), ("uniform", 1), ("early", 1)])
def test_oracle_has_full_marks_and_every_test_is_certified_at_distance(span: int, placement: Placement, count: int, played: Played) -> None:
    for seed in seeds(span, count):
        result = played("oracle", span, seed, placement).result
        assert [(seed, test.id, test.reason) for test in result.tests if test.score != 1] == []
        assert [(seed, test.id, test.span_dealt) for test in result.tests if not (test.certified and test.at_distance)] == []
        assert {test.scenario for test in result.tests if test.exempt} <= {"chapterbreak"}
        assert result.score == result.max_score == (10 if span == 2_000 else 11)
        assert result.score_bounds == (result.score, result.score)
        assert len(result.tests) == 3 * result.max_score


@pytest.mark.parametrize("agent", ["oracle", "silent"])
def test_isolated_tests_are_played_alone_without_filler(agent: str, tmp_path: Path) -> None:
    (result,) = run(tmp_path, planned(32_000, 0, agent, tmp_path, isolated=True))
    assert result.score == (11 if agent == "oracle" else 0)
    assert len({test.conversation for test in result.tests}) == 33
    folder = next(tmp_path.iterdir())
    for test in result.tests:
        transcript = Transcript.of(_events(folder, test.conversation or ""))
        assert set(transcript.tests) == {test.id}
        assert transcript.filler_tokens == 0 or test.scenario == "prospective_memory"


@pytest.mark.parametrize("span", SPANS)
def test_silent_scores_nothing(span: int, played: Played) -> None:
    for seed in seeds(span, 2):
        result = played("silent", span, seed).result
        assert [(seed, test.id, test.reason) for test in result.tests if test.score != 0] == []
        assert result.score == 0


@pytest.mark.parametrize("placement", ["spread", "uniform"])
@pytest.mark.parametrize(("span", "mean_open"), [(2_000, 6), (4_000, 7), (32_000, 8), (120_000, 8), (200_000, 8), (500_000, 8)])
def test_tests_are_interleaved_and_keep_their_spans(span: int, mean_open: float, placement: Placement, played: Played) -> None:
    runs = [RunFolder(played("oracle", span, seed, placement).folder) for seed in seeds(span, 6 if span < 32_000 else 2)]
    weaves = [woven(run, span) for run in runs]
    assert [each.late for each in weaves if each.late] == []
    assert fmean(each.mean_open for each in weaves) >= mean_open
    assert min(each.switch_rate for each in weaves) >= (0.85 if placement == "uniform" else 0.75)
    if span in TOKENS:
        assert fmean(each.tokens for each in weaves) <= 1.1 * TOKENS[span]
    if placement == "spread":
        assert min(each.nearest for each in weaves) >= 0.05
    if placement == "spread" and span >= 32_000:
        assert max(each.stretch for each in weaves) <= 0.2


@pytest.mark.parametrize("placement", ["spread", "uniform"])
@pytest.mark.parametrize("span", [2_000, 32_000])
def test_every_agent_is_dealt_the_same_conversation(span: int, placement: Placement, played: Played, tmp_path: Path) -> None:
    """An agent that says next to nothing, one that never stops talking, and one that is always right."""
    (wordy,) = trio.run(play_plans, [planned(span, 0, "python:tests.test_ltm:Wordy", tmp_path, placement=placement)])
    sides = []
    for outcome in (played("silent", span, 0, placement), wordy, played("oracle", span, 0, placement)):
        messages = [event for event in _events(outcome.folder, "main") if isinstance(event, events.Message)]
        sides.append([_dealt(message) for message in messages])
    assert sides[0] == sides[1] == sides[2]


def _dealt(message: events.Message) -> tuple[object, ...]:
    """Return the part of a message that is the same for every agent: everything but, in tests that depend on the reply, its text."""
    own = message.test is not None and message.test.startswith(("restaurant", "prospective_memory"))
    return (message.test, message.sent_at, *(() if own else (message.kind, message.text, message.dealt)))


class Wordy(BaseAgent):
    async def reply(self, message: Message) -> Reply:
        return Reply("That is a lot to take in, and I have a great deal to say about it. " * 20)


def check_early(transcript: Transcript, span: int) -> None:
    """Check that the last needle of each test that allows it is three quarters of a span before the last question."""
    early = {test.scenario.name: test.scenario.early for test in _tests(0, "early")}
    checked = set()
    for test in transcript.tests.values():
        if early[test.definition.scenario]:
            checked.add(test.definition.scenario)
            last_question = max(evidence.question_turn for evidence in test.evidence)
            nearest = min(evidence.dealt or 0 for evidence in test.evidence if evidence.question_turn == last_question)
            assert nearest >= 0.75 * span, test.id
    assert early.keys() - checked == {"trigger_response", "chapterbreak", "restaurant"}


@pytest.mark.parametrize("span", SPANS[1:])
def test_early_placement_puts_the_last_needle_three_quarters_of_a_span_before_its_question(span: int, played: Played) -> None:
    check_early(RunFolder(played("oracle", span, 0, "early").folder).transcripts()["main"], span)


def test_early_placement_does_so_for_every_seed_and_agent(tmp_path: Path) -> None:
    for seed in range(5):
        check_early(converse(32_000, seed, Babbler(seed), tmp_path / f"{seed}.jsonl", "early"), 32_000)


def test_one_seed_gives_one_journal_and_another_seed_another(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("first", "second", "other")]
    for folder, seed in zip(folders, (3, 3, 4), strict=True):
        run(tmp_path, planned(4_000, seed, "notebook", folder))
    journals = [nameless(next(folder.iterdir()) / "conversations" / "main" / "journal.jsonl") for folder in folders]
    assert journals[0] == journals[1]
    assert journals[0] != journals[2]


def _events(folder: Path, conversation: str) -> list[events.Event]:
    return list(read_journal(RunFolder(folder).journal(conversation)))


def test_chapterbreak_is_left_out_at_2k_with_a_message(tmp_path: Path) -> None:
    made = planned(2_000, 0, "silent", tmp_path)
    assert len(made.manifest.left_out) == 3
    assert all("chapterbreak" in line and "the span is 2,000" in line for line in made.manifest.left_out)


def test_every_question_has_evidence_measured_in_tokens(tmp_path: Path) -> None:
    transcript = converse(4_000, 0, Babbler(0), tmp_path / "journal.jsonl")
    messages: dict[int, events.Message] = {}
    for event in read_journal(tmp_path / "journal.jsonl"):
        if isinstance(event, events.Message):
            messages[event.turn] = event
    for test in transcript.tests.values():
        assert test.evidence or test.stopped, test.id
        for evidence in test.evidence:
            needle, question = messages[evidence.needle_turn], messages[evidence.question_turn]
            assert needle.test == question.test == test.id
            assert evidence.tokens == question.start - needle.start - needle.tokens >= 0
