"""What colours, name_list, shopping and trigger_response have in common: they are scripts, graded by rules."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from longspan.scenarios.ltm.colours import Colours
from longspan.scenarios.ltm.name_list import NameList
from longspan.scenarios.ltm.shopping import Shopping
from longspan.scenarios.ltm.trigger_response import TriggerResponse
from longspan.simulator.contract.graded_record import Exchange, Record
from longspan.simulator.contract.scenario import Scenario
from longspan.simulator.running.preflight.rehearsal import Rehearsal, rehearse

MAKERS: dict[type[Scenario], str] = {Colours: "changes", NameList: "names", Shopping: "changes", TriggerResponse: "triggers"}
every = pytest.mark.parametrize("kind", MAKERS, ids=lambda kind: kind.name)

HUGE = 1_000_000
LONG = {
    "words": "red leek Ada " * (HUGE // 13),
    "brackets": "[" * HUGE,
    "open lists": '["a", ' * (HUGE // 6),
    "objects": '{"item": "leek", "quantity": 1}' * (HUGE // 31),
    "a list": json.dumps(["Ada"] * (HUGE // 7)),
    "quotes": "['\"" * (HUGE // 3),
    "accents": "e" + "\u0301\u0316" * (HUGE // 2),
    "digits": "[" + "7" * HUGE + "]",
    "commas": "," * HUGE,
    "no": "not red, " * (HUGE // 9),
}


def ideal(text: str, ideal: str) -> str:
    return ideal


def played(scenario: Scenario, seed: int, reply: Callable[[str, str], str] = ideal) -> Rehearsal:
    return rehearse(scenario, seed=seed, reply=reply)


def answered(rehearsal: Rehearsal, replies: list[str]) -> Record:
    """The record of the same test with these replies to its questions."""
    given = iter(replies)
    return Record([Exchange(e.turn, e.text, next(given) if e.asks else e.reply, e.asks, e.needle) for e in rehearsal.record.exchanges])


def replies(rehearsal: Rehearsal) -> list[str]:
    return [exchange.reply for exchange in rehearsal.record.answers]


@every
def test_ideal_replies_score_full(kind: type[Scenario]) -> None:
    for seed in range(50):
        grade = played(kind(), seed).grade
        assert grade.score == 1, grade.reason


@every
@pytest.mark.parametrize(
    "reply",
    ["OK.", "", " \n", "I'm sorry, as an AI I do not keep such things.", "[]", "{}", "*shrugs*", "[1]", "null", "\U0001f937", "[smiles]"],
)
def test_replies_that_say_nothing_score_zero(kind: type[Scenario], reply: str) -> None:
    for seed in range(5):
        assert played(kind(), seed, lambda text, ideal: reply).grade.score == 0


@every
def test_a_quotation_that_another_test_asked_for_does_no_harm(kind: type[Scenario]) -> None:
    quotation = '\n\n"What is done well is done soon [sic]; and the rest, never." - Theodora Vane'
    for seed in range(20):
        assert played(kind(), seed, lambda text, ideal: ideal + quotation).grade.score == 1


@every
def test_the_answers_of_another_test_score_as_chance_does(kind: type[Scenario]) -> None:
    scenario = kind()
    tests = [played(scenario, seed) for seed in range(51)]
    scores = [scenario.grade(mine.script.facts, answered(mine, replies(other))).score for mine, other in pairwise(tests)]
    assert fmean(score for score in scores if score is not None) <= scenario.chance(tests[0].script.facts) + 0.1
    assert 0 <= scenario.chance(tests[0].script.facts) < 0.2


@every
def test_the_seed_makes_the_test(kind: type[Scenario]) -> None:
    assert played(kind(), 3).script == played(kind(), 3).script
    scripts = [played(kind(), seed).script for seed in range(10)]
    assert len({json.dumps([line.text for line in script.lines]) for script in scripts}) == 10


@every
def test_facts_survive_a_journal(kind: type[Scenario]) -> None:
    for seed in range(10):
        rehearsal = played(kind(), seed)
        facts = json.loads(json.dumps(rehearsal.script.facts))
        assert facts == rehearsal.script.facts
        assert kind().grade(facts, rehearsal.record) == rehearsal.grade


@every
def test_a_grade_points_at_its_turns(kind: type[Scenario]) -> None:
    rehearsal = played(kind(), 0)
    assert rehearsal.grade.turns == tuple(exchange.turn for exchange in rehearsal.record.answers)
    assert "\n" not in rehearsal.grade.reason


@every
def test_messages_are_short(kind: type[Scenario]) -> None:
    for seed in range(30):
        script = played(kind(), seed).script
        assert all(3 <= len(line.text.split()) <= 30 for line in script.lines)
        assert script.farewell
        assert len(script.farewell.split()) <= 30


@every
def test_wordings_vary(kind: type[Scenario]) -> None:
    scripts = [played(kind(), seed).script for seed in range(40)]
    assert len({line.text for script in scripts for line in script.lines if line.asks}) >= 3
    assert len({script.farewell for script in scripts}) >= 2


@every
@pytest.mark.parametrize("value", [0, -1, 51, 2.5, "many", None])
def test_nonsense_is_refused(kind: type[Scenario], value: Any) -> None:
    with pytest.raises(ValidationError):
        kind(**{MAKERS[kind]: value})


@every
@pytest.mark.parametrize("value", [1, 2, 50])
def test_small_and_big_tests_work(kind: type[Scenario], value: int) -> None:
    for seed in range(10):
        rehearsal = played(kind(**{MAKERS[kind]: value}), seed)
        assert rehearsal.grade.score == 1
        assert value + 1 == len(rehearsal.script.lines)
        assert played(kind(**{MAKERS[kind]: value}), seed, lambda text, ideal: "OK.").grade.score == 0


@every
def test_unknown_parameters_are_refused(kind: type[Scenario]) -> None:
    with pytest.raises(ValidationError):
        kind(colour="red")


@every
@pytest.mark.parametrize("reply", LONG.values(), ids=LONG)
def test_huge_replies_are_graded(kind: type[Scenario], reply: str) -> None:
    grade = played(kind(**{MAKERS[kind]: 1}), 0, lambda text, ideal: reply).grade
    assert grade.score is not None
    assert len(grade.reason) < 1000


PIECES = st.sampled_from(
    [
        *"[]{}()\"'`:,;.!?-\n\\/*#_ \u201c\u2019\u2026",
        *["```json\n", "```", "...", "not ", "was ", "now ", "from ", "or ", "red", "Blue", "grey", "leek", "leeks", "Ada", "dozen"],
        *["\\u", "\\ud83d", "null", "True", "NaN", "-1", "2", "1e99", '"item"', '"quantity": ', '"name": ', "Clocks are poor dancers"],
        *["\ud800", "\x00", "\u0301"],
    ]
)


@every
@settings(max_examples=200, deadline=None)
@given(reply=st.one_of(st.text(), st.lists(PIECES, max_size=40).map("".join)), seed=st.integers(0, 5))
def test_any_reply_is_graded(kind: type[Scenario], reply: str, seed: int) -> None:
    grade = played(kind(), seed, lambda text, ideal: reply).grade
    assert grade.score is not None
    assert 0 <= grade.score <= 1
    assert grade.reason.strip()
    assert "\n" not in grade.reason
    assert grade.reason.encode("utf-8")
