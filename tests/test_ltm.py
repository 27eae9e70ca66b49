"""The LTM suite as a whole: properties at every span, for every agent."""

from __future__ import annotations

import gzip
import json
import re
from functools import cache
from pathlib import Path
from statistics import fmean

import pytest
import trio

from longspan.agents.base import BaseAgent
from longspan.simulator import events
from longspan.simulator.grading.grades import Result
from longspan.simulator.journal import read_journal
from longspan.simulator.planning import Plan, plan
from longspan.simulator.run_folder import RunFolder
from longspan.simulator.runner import play
from longspan.simulator.scenario import Scenario
from longspan.simulator.script import Placement
from longspan.simulator.settings import RunSettings
from longspan.simulator.suite import load_suite, make_tests
from longspan.simulator.tokens import Tokenizer
from longspan.simulator.transcript import Transcript
from tests.rig import Babbler, setting
from tests.rig import play as play_tests

SPANS = [2_000, 32_000, 120_000, 200_000, 500_000]
PEER_TOKENS = {32_000: 124_000, 120_000: 363_000, 200_000: 577_000, 500_000: 1_390_000}
"""The length of the GoodAI benchmark's conversations."""


def run(tmp_path: Path, *plans: Plan) -> list[Result]:
    return [outcome.result for outcome in trio.run(lambda: play(plans))]


def planned(span: int, seed: int, agent: str, out: Path, *, isolated: bool = False, placement: Placement = "uniform") -> Plan:
    return plan(RunSettings(suite=load_suite("ltm"), span=span, seed=seed, agent=agent, isolated=isolated, placement=placement), out)


def converse(span: int, seed: int, agent: BaseAgent, path: Path, placement: Placement = "uniform") -> Transcript:
    return play_tests(_tests(seed), agent, setting(span, seed=seed, placement=placement), path)


@cache
def _tests(seed: int):  # type: ignore[no-untyped-def]
    return make_tests(load_suite("ltm"), seed, "uniform")


def good(transcript: Transcript, span: int) -> list[bool]:
    return [test.certified(span) and test.at_distance(span) for test in transcript.tests.values()]


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("placement", ["uniform", "early"])
def test_oracle_has_full_marks_and_every_test_is_certified_at_distance(span: int, placement: Placement, tmp_path: Path) -> None:
    for seed in range(5):
        (result,) = run(tmp_path, planned(span, seed, "oracle", tmp_path, placement=placement))
        assert [(test.id, test.reason) for test in result.tests if test.score != 1] == []
        assert [(test.id, test.span_used) for test in result.tests if not (test.certified and test.at_distance)] == []
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
def test_silent_scores_nothing(span: int, tmp_path: Path) -> None:
    for seed in range(5):
        (result,) = run(tmp_path, planned(span, seed, "silent", tmp_path))
        assert [(test.id, test.reason) for test in result.tests if test.score != 0] == []
        assert result.score == 0


@pytest.mark.parametrize("span", [2_000, 4_000, 32_000, 120_000, 200_000, 500_000])
def test_spans_are_kept_with_replies_of_any_length(span: int, tmp_path: Path) -> None:
    """Replies of 5 to 60 random tokens, 20 seeds. Also checks how well tests are interleaved."""
    kept: list[bool] = []
    for seed in range(20):
        transcript = converse(span, seed, Babbler(seed), tmp_path / f"{seed}.jsonl")
        kept += good(transcript, span)
        if span == 2_000:
            assert transcript.tokens < 16_000
        if span >= 32_000:
            assert transcript.tokens <= PEER_TOKENS[span]
            assert transcript.switches / transcript.steps >= 0.7
            assert transcript.crowd / transcript.spoken >= (6.5 if span == 32_000 else 8)
    assert fmean(kept) >= 0.99


@pytest.mark.parametrize("span", SPANS[1:])
def test_spans_are_kept_with_the_reply_lengths_of_real_models(span: int, tmp_path: Path, goodai: Path) -> None:
    lengths = _recorded_lengths(goodai)
    kept: list[bool] = []
    for seed in range(20):
        agent = Babbler(seed, lambda random: random.choice(lengths))
        kept += good(converse(span, seed, agent, tmp_path / f"{seed}.jsonl"), span)
    assert fmean(kept) >= 0.98


@cache
def _recorded_lengths(goodai: Path) -> tuple[int, ...]:
    """Return the tokens of the models' replies in the published runs, without filler."""
    count = Tokenizer().count
    found: list[int] = []
    for path in sorted((goodai / "results").glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                entries = json.loads(line)["task_log"]
                found += [count(entry[said.end() :]) for entry in entries if (said := re.match(r"Agent \([^)]*\): ", entry))]
    assert len(found) > 5000
    assert max(found) > 1000
    return tuple(found)


@pytest.mark.parametrize("span", SPANS[1:])
def test_early_placement_puts_the_last_needle_three_quarters_of_a_span_before_its_question(span: int, tmp_path: Path) -> None:
    scenarios: dict[str, type[Scenario]] = {test.scenario.name: type(test.scenario) for test in _tests(0)}
    checked = set()
    for seed in range(5):
        transcript = converse(span, seed, Babbler(seed), tmp_path / f"{seed}.jsonl", "early")
        for test in transcript.tests.values():
            if scenarios[test.definition.scenario].early:
                checked.add(test.definition.scenario)
                assert test.asked is not None
                last_question = max(evidence.question_turn for evidence in test.evidence)
                nearest = min(evidence.tokens for evidence in test.evidence if evidence.question_turn == last_question)
                assert nearest >= 0.75 * span, test.id
    forbidden = {name for name, scenario in scenarios.items() if not scenario.early}
    assert forbidden == {"trigger_response", "chapterbreak", "restaurant"}
    assert checked == set(scenarios) - forbidden


def test_one_seed_gives_one_journal_and_another_seed_another(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("first", "second", "other")]
    for folder, seed in zip(folders, (3, 3, 4), strict=True):
        run(tmp_path, planned(4_000, seed, "notebook", folder))
    journals = [_journal(next(folder.iterdir()) / "conversations" / "main" / "journal.jsonl") for folder in folders]
    assert journals[0] == journals[1]
    assert journals[0] != journals[2]


def _journal(path: Path) -> list[str]:
    """Return a journal's lines without `measured`."""
    lines = []
    for line in path.read_text("utf-8").splitlines():
        entry = json.loads(line)
        entry.pop("measured", None)
        lines.append(json.dumps(entry, ensure_ascii=False))
    return lines


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
