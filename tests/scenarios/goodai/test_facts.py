"""Facts and records of GoodAI's tests, as our graders take them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from longspan.scenarios.goodai.facts import SCENARIOS, make_facts, make_record
from longspan.scenarios.goodai.files import TestRecord
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.installed import SCENARIOS as GROUP
from longspan.simulator.base.installed import find_entry_points
from longspan.simulator.contract.graded_record import Exchange, Record
from longspan.simulator.contract.plugins import make_scenario
from longspan.simulator.suite.suite import load_suite

ASKING = sorted(set(SCENARIOS) - {"Restaurant"})

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


def recorded(dataset: str, log: Sequence[tuple[str, str]], *, expected: list[Any], actual: list[Any]) -> TestRecord:
    return TestRecord(
        agent="somebody",
        dataset=dataset,
        example="0",
        task_log=[f"{who} (2024-06-04 07:14:{at:02d}.5): {text}" for at, (who, text) in enumerate(log)],
        expected_responses=expected,
        actual_responses=actual,
        score=1,
        max_score=1,
    )


def said(*exchanges: tuple[str, str]) -> list[tuple[str, str]]:
    return [entry for text, reply in exchanges for entry in (("Test", text), ("Agent", reply))]


def test_there_is_a_scenario_of_ours_for_every_dataset() -> None:
    assert sorted(SCENARIOS.values()) == sorted(load_suite("ltm").scenarios)
    assert set(SCENARIOS.values()) <= set(find_entry_points(GROUP))


# ---- published tests


def definitions(goodai: Path) -> list[tuple[str, dict[str, Any]]]:
    found = [(path.parent.name, json.loads(path.read_text("utf-8"))) for path in sorted(goodai.glob("definitions/*/*/*.def.json"))]
    return [(dataset, definition) for dataset, definition in found if dataset != "Restaurant"]


def expected_replies(dataset: str, expected: list[Any]) -> list[str]:
    """What the peer expects, said as a reply to each question."""
    match dataset:
        case "NameList":
            return [json.dumps(expected)]
        case "SallyAnne":
            return [json.dumps({"answer": expected[0]})]
        case "Shopping":
            return [json.dumps([{"item": item.title(), "quantity": quantity} for item, quantity in expected])]
        case "Spy Meeting":
            return [" ".join(meanings[0] for meanings in expected)]
        case _:
            return list(expected)


def as_expected(dataset: str, script: list[str], expected: list[Any]) -> Record:
    """A test where the agent replies as the peer expects."""
    if dataset == "Prospective Memory":
        ((quotation, _, nth),) = expected
        replies = ["OK." for _ in range(nth)] + [f'OK.\n"{quotation}"']  # to the quotation, to n - 1 messages, and the nth
        turns = [Exchange(at, "Something.", reply, asks=at == 1) for at, reply in enumerate(replies)]
        return Record(exchanges=turns[:2], watched=turns[2:])
    replies = expected_replies(dataset, expected)
    told = [Exchange(at, line, "OK.") for at, line in enumerate(script)]
    return Record(exchanges=told + [Exchange(len(told) + at, "?", reply, asks=True) for at, reply in enumerate(replies)])


@pytest.mark.parametrize("rules", ["longspan", "paper"])
def test_what_every_published_definition_expects_has_full_marks(goodai: Path, rules: str) -> None:
    found = definitions(goodai)
    assert {dataset for dataset, _ in found} == set(ASKING)
    pool = [definition["expected_responses"] for dataset, definition in found if dataset == "Spy Meeting"]
    for dataset, definition in found:
        known = make_facts(dataset, definition["script"], definition["expected_responses"], pool)
        assert json.loads(json.dumps(known)) == known
        scenario = make_scenario(SCENARIOS[dataset], {})
        if "rules" in type(scenario).model_fields:
            scenario = make_scenario(SCENARIOS[dataset], {"rules": rules})
        grade = scenario.grade(known, as_expected(dataset, definition["script"], definition["expected_responses"]))
        assert grade.score == 1, (dataset, grade.reason)


# ---- facts


def test_a_joke_is_numbered_as_it_was_told_and_the_question_is_none() -> None:
    told = ["A lamp walks into a bar.", "My kettle sings.", "Which joke did I tell you about 2 hours ago?"]
    assert make_facts("Jokes", told, ["my kettle sings"]) == {"jokes": told[:2], "asked": 1}


def test_a_way_is_read_leg_by_leg() -> None:
    way = "(Something.)\nFrom Old Mill, go 4km East to Pier.\nFrom Pier, go 2km North to House of Cards."
    assert make_facts("Locations Directions", [], [way]) == {
        "places": ["Old Mill", "Pier", "House of Cards"],
        "legs": [["east", 4.0], ["north", 2.0]],
        "unit": "km",
    }


def test_containers_are_what_something_was_put_into() -> None:
    story = ["(On TV) Zoe entered the hall.\n", "(On TV) Ben is in the hall.\n", "(On TV) The hat is in the bag.\n"]
    story += ["(On TV) Zoe moved the hat to the tub.\n", "(On TV) Ben exited the hall.\n", "Where will Ben look for the hat?"]
    assert make_facts("SallyAnne", story, ["bag"]) == {"answer": "bag", "containers": ["bag", "tub"], "first": "bag", "really": "tub"}


def test_spies_are_confused_with_other_meetings_and_accept_what_their_own_messages_mean_in_any_of_them() -> None:
    own, later = [["tent"], ["noon", "midday"]], [["tent", "canvas"], ["noon", "midday"]]
    other, newer = [["sled", "skis"], ["midday", "twelve"]], [["skis", "snowshoes"], ["pier"]]
    assert make_facts("Spy Meeting", [], own, [own, later, other, newer]) == {
        "accepted": [["tent", "canvas"], ["noon", "midday", "twelve"]],
        "foreign": [["sled", "skis", "snowshoes"], ["pier"]],
    }
    assert make_facts("Spy Meeting", [], own) == {"accepted": own, "foreign": []}


@pytest.mark.parametrize(
    ("dataset", "lines", "expected"),
    [
        ("Bicycles", [], ["red"]),
        ("Colours", [], []),
        ("Colours", [], ["red", "blue"]),
        ("Colours", [], [" "]),
        ("ChapterBreak", [], ["two"]),
        ("Jokes", ["A lamp walks into a bar."], ["My kettle sings."]),
        ("Locations Directions", [], ["Up the hill."]),
        ("Locations Directions", [], ["From A, go 1km North to B.\nFrom C, go 1km North to D."]),
        ("NameList", [], [["Zoe"]]),
        ("Prospective Memory", ["'Well.' - Zoe"], [["Well.", "Zoe", 3]]),
        ("Prospective Memory", ["'Well.' - Zoe", "Say it later."], [["Well.", "Zoe", "3rd"]]),
        ("SallyAnne", ["(On TV) The hat is in the bag."], ["tub"]),
        ("Shopping", [], [["soap", "two"]]),
        ("Shopping", [], [["soap", 0]]),
        ("Spy Meeting", [], [["tent"], []]),
        ("Trigger Response", [], ["Bless you", "Ahoy"]),
        ("Restaurant", [], []),
    ],
)
def test_what_cannot_be_understood_is_told_in_one_line(dataset: str, lines: list[str], expected: list[Any]) -> None:
    with pytest.raises(InputError) as caught:
        make_facts(dataset, lines, expected)
    assert dataset in str(caught.value)
    assert "\n" not in str(caught.value)


@given(dataset=st.sampled_from(ASKING), lines=st.lists(st.text() | JSON, max_size=3), expected=st.lists(JSON, max_size=3) | JSON)
@example(dataset="NameList", lines=[], expected=["Zoe\ud800"])
@example(dataset="Prospective Memory", lines=["a\ud800", "b"], expected=[["Well.", "Zoe", 3]])
@example(dataset="Prospective Memory", lines=["a", "b"], expected=[["Well.", "Zoe", float("nan")]])
@example(dataset="Shopping", lines=[], expected=[["soap", float("inf")]])
def test_anything_else_is_refused_or_gives_json(dataset: str, lines: list[Any], expected: Any) -> None:
    try:
        known = make_facts(dataset, lines, expected)
    except InputError as error:
        known = {"refused": str(error).splitlines()[1:]}
    assert json.loads(json.dumps(known, allow_nan=False)) == known
    assert not known.get("refused")


# ---- records


def test_the_question_is_where_the_answer_stands_and_the_message_after_it_is_no_part_of_the_test() -> None:
    log = said(("I am Zoe.", "Noted."), ("Who am I?", "  Zoe.\n"), ("Forget it.", "Done."))
    played = make_record(recorded("NameList", log, expected=["Zoe"], actual=["Zoe."]))
    assert [(each.text, each.asks) for each in played.exchanges] == [("I am Zoe.", False), ("Who am I?", True)]


def test_each_of_several_answers_has_its_question() -> None:
    log = said(("Whenever I hum, say: ahoy", "OK."), ("Hum!", "Ahoy"), ("Hum!", "OK."), ("Hum!", "Ahoy"), ("Cancel it.", "Done."))
    played = make_record(recorded("Trigger Response", log, expected=["ahoy"] * 3, actual=["Ahoy", "OK.", "Ahoy"]))
    assert [each.turn for each in played.answers] == [1, 2, 3]
    assert len(played.exchanges) == 4


def test_an_answer_that_is_not_in_the_log_counts_all_the_same() -> None:
    played = make_record(recorded("Colours", said(("It is red.", "OK."), ("Which?", "Blue.")), expected=["Red"], actual=["Red."]))
    assert played.answer.reply == "Red."


def test_quotations_are_watched_for_in_all_that_was_said_afterwards_but_for_the_farewell() -> None:
    log = said(("'Well.' - Zoe", "Nice."), ("Append the quote from Zoe to your 3rd response.", "OK."))
    log += [("System", "Trivia."), ("Agent", "Facts."), *said(("I am Ben.", "Hi."), ("Forget the quote.", "Well."))]
    test = recorded("Prospective Memory", log, expected=[["Well.", "Zoe", 3]], actual=["OK."])
    played = make_record(test)
    assert [each.text for each in played.answers] == ["Append the quote from Zoe to your 3rd response."]
    assert [each.reply for each in played.watched] == ["Facts.", "Hi."]
    with pytest.raises(InputError, match="no instruction"):
        make_record(test.model_copy(update={"task_log": test.task_log[:2]}))


def test_replies_that_are_no_text_are_refused() -> None:
    with pytest.raises(InputError, match="must be text"):
        make_record(recorded("Colours", said(("Which?", "Red.")), expected=["Red"], actual=[3]))
