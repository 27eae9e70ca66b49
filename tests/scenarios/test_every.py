"""What holds for every scenario of the suites ltm and memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.contract.graded_record import Exchange, Record
from longspan.simulator.contract.plugins import make_scenario
from longspan.simulator.contract.scenario import Scenario
from longspan.simulator.running.preflight.rehearsal import Rehearsal, rehearse
from longspan.simulator.suite.suite import load_suite

LTM, MEMORY = (list(load_suite(suite).scenarios) for suite in ("ltm", "memory"))
NAMES = [*LTM, *MEMORY]


def scenario(name: str) -> Scenario:
    return make_scenario(name, {})


def ideals_of(name: str, seed: int) -> list[str]:
    """The ideal replies of a test, to its own messages and to those it watches."""
    found: list[str] = []

    def note(text: str, ideal: str) -> str:
        found.append(ideal)
        return ideal

    rehearse(scenario(name), seed=seed, reply=note)
    return found


def answered_by(name: str, seed: int, replies: Iterator[str]) -> Rehearsal:
    return rehearse(scenario(name), seed=seed, reply=lambda text, ideal: next(replies, "OK."))


def test_the_paper_has_eleven() -> None:
    assert len(LTM) == 11
    assert not set(LTM) & set(MEMORY)


@pytest.mark.parametrize("name", NAMES)
def test_ideal_replies_score_in_full_and_ok_scores_nothing(name: str) -> None:
    for seed in range(100, 115):
        assert rehearse(scenario(name), seed=seed, reply=lambda text, ideal: ideal).grade.score == 1
        assert rehearse(scenario(name), seed=seed, reply=lambda text, ideal: "OK.").grade.score == 0


@pytest.mark.parametrize("name", NAMES)
def test_the_ideal_replies_of_another_test_score_no_better_than_chance(name: str) -> None:
    seeds = range(40)
    ideals = {seed: ideals_of(name, seed) for seed in seeds}
    played = [answered_by(name, seed, iter(ideals[(seed + 1) % len(seeds)])) for seed in seeds]
    chance = fmean(scenario(name).chance(each.script.facts) for each in played)
    scores = [each.grade.score for each in played]
    assert None not in scores
    assert fmean(score for score in scores if score is not None) <= chance + 0.1


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_means_one_test_and_its_facts_survive_the_journal(name: str) -> None:
    first, again, other = (scenario(name).make(Random(seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert json.loads(json.dumps(first.facts)) == first.facts
    played = rehearse(scenario(name), seed=1, reply=lambda text, ideal: ideal)
    assert scenario(name).grade(json.loads(json.dumps(played.script.facts)), played.record) == played.grade


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30, deadline=None)
@given(reply=st.text(max_size=200))
def test_no_reply_breaks_a_test_or_its_grader(name: str, reply: str) -> None:
    grade = rehearse(scenario(name), seed=3, reply=lambda text, ideal: reply).grade
    assert grade.score is None or 0 <= grade.score <= 1
    assert grade.reason


@pytest.mark.parametrize("name", NAMES)
def test_a_huge_reply_is_graded(name: str) -> None:
    for reply in ("word " * 200_000, "[" * 100_000, '{"a": ' * 20_000, "\x00" * 100_000, "1 2 3 " * 50_000):
        assert rehearse(scenario(name), seed=3, reply=lambda text, ideal, reply=reply: reply).grade.reason


@pytest.mark.parametrize("name", NAMES)
def test_a_foreign_quotation_at_the_end_of_an_ideal_reply_costs_nothing(name: str) -> None:
    """Another test may have asked for it (prospective memory)."""
    quotation = ' "A lantern is patience that learned to burn." - Ottokar Brindle'
    for seed in range(10):
        played = rehearse(scenario(name), seed=seed, reply=lambda text, ideal: ideal + quotation)
        assert played.grade.score == 1, played.grade.reason


@pytest.mark.parametrize("name", NAMES)
def test_a_record_without_an_answer_is_no_crash_of_ours(name: str) -> None:
    from longspan.simulator.base.errors import ScenarioError

    facts = scenario(name).make(Random(1)).facts
    for record in (Record(), Record(exchanges=(Exchange(0, "Hello.", "Hello."),))):
        try:
            grade = scenario(name).grade(facts, record)
        except ScenarioError:
            continue
        assert not grade.score


@pytest.mark.parametrize("name", [name for name in NAMES if name != "reminder"])
def test_a_reminder_at_the_end_of_an_ideal_reply_costs_nothing(name: str) -> None:
    """Another test may have asked for it (reminder)."""
    errands = list(load_words("errands").values())
    for seed in range(10):
        played = rehearse(scenario(name), seed=seed, reply=lambda text, ideal, seed=seed: f"{ideal}\nReminder: {errands[5 * seed]}.")
        assert played.grade.score == 1, played.grade.reason
