"""Similar facts: other people's, told between what a question needs and the question. They change nothing else of a test."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, get_args

import pytest
import trio

from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.contract.graded_record import Exchange, Grade, Record
from longspan.simulator.contract.plugins import make_scenario
from longspan.simulator.contract.script import Line, Placement
from longspan.simulator.reading.matching import found_words
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.preflight.rehearsal import rehearse
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite, make_test

NAMES = ("colours", "name_list", "shopping", "spy_meeting", "locations")


def graded(name: str, facts: Mapping[str, Any], reply: str) -> Grade:
    return make_scenario(name, {}).grade(facts, Record([Exchange(7, "Well?", reply, asks=True)]))


@pytest.mark.parametrize("name", NAMES)
def test_the_rest_of_a_test_is_the_one_that_has_none_and_its_lines_stay_in_their_places(name: str) -> None:
    for placement in get_args(Placement):
        for id in "123":
            without, few, many = (
                make_test(make_scenario(name, {"similar": number} if number else {}), id, 0, 0, None, placement) for number in (0, 4, 8)
            )
            told = {key: value for key, value in few.script.facts.items() if key != "similar"}
            assert (told, few.script.farewell) == (without.script.facts, without.script.farewell)
            for test, number in ((few, 4), (many, 8)):
                lines = list(test.script.lines)
                asides = lines[-1 - number : -1]
                assert [*lines[: -1 - number], lines[-1]] == list(without.script.lines)
                assert not any(line.needle or line.asks for line in asides)
                places = [line.at or 0 for line in lines]
                assert places == sorted(places)
            assert few.script.facts["similar"] == many.script.facts["similar"][:4]


@pytest.mark.parametrize("name", NAMES)
def test_a_test_without_any_is_journaled_as_before_there_was_the_parameter(name: str) -> None:
    definition = make_test(make_scenario(name, {"similar": 0}), "1", 0, 0).definition()
    assert "similar" not in json.dumps(definition)
    assert make_test(make_scenario(name, {"similar": 2}), "1", 0, 0).definition()["parameters"]["similar"] == 2


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("number", [1, 8, 50])
def test_the_ideal_reply_keeps_full_marks_and_the_numbers_are_told(name: str, number: int) -> None:
    scenario = make_scenario(name, {"similar": number})
    for seed in range(20):
        played = rehearse(scenario, seed=seed, reply=lambda text, ideal: ideal)
        assert played.grade.score == 1, played.grade.reason
        assert scenario.numbers(played.script.facts)["similar"] == number
        assert rehearse(scenario, seed=seed, reply=lambda text, ideal: "OK.").grade.score == 0
        assert [scenario.guess(line.text) is not None for line in played.script.lines] == [line.asks for line in played.script.lines]


@pytest.mark.parametrize(
    ("name", "parameters", "updates"), [("colours", {"changes": 5}, 4), ("name_list", {"names": 1}, 0), ("shopping", {}, 5)]
)
def test_updates_are_changes_after_the_first_telling(name: str, parameters: dict[str, Any], updates: int) -> None:
    scenario = make_scenario(name, parameters)
    assert scenario.numbers(scenario.make(Random(0)).facts) == {"similar": 0, "updates": updates}
    assert scenario.numbers({}) == {"similar": 0}, "an imported test's facts may not say"


def test_nobody_else_has_the_right_answer() -> None:
    for seed in range(100):
        colours = make_scenario("colours", {"similar": 20, "changes": 50 if seed % 2 else 3}).make(Random(seed)).facts
        assert colours["colour"] not in {colour for _, colour in colours["similar"]}
        names = make_scenario("name_list", {"similar": 50, "names": 50}).make(Random(seed)).facts
        assert not set(names["names"]) & {name for _, name in names["similar"]}
        shopping = make_scenario("shopping", {"similar": 50, "changes": 50}).make(Random(seed)).facts
        assert not {item for _, item, _ in shopping["changes"]} & {item for _, item, _ in shopping["similar"]}
        assert len({who for who, _ in names["similar"]}) == 50


def test_a_similar_fact_says_whose_it_is_and_names_no_colour_but_its_own() -> None:
    for seed in range(30):
        script = make_scenario("colours", {"similar": 8}).make(Random(seed))
        asides: list[Line] = [line for line in script.lines if not line.needle and not line.asks]
        for line, (who, colour) in zip(asides, script.facts["similar"], strict=True):
            assert found_words(line.text, load_words("colours")) == [colour]
            assert f"my {who}" in line.text or f"My {who}" in line.text


COLOURS = {"colour": "red", "told": ["brown", "blue", "red"], "similar": [["aunt", "pink"], ["brother-in-law", "black"]]}


@pytest.mark.parametrize(
    ("reply", "score", "reason"),
    [
        ("Red.", 1, ""),
        ("Red. (Your aunt's favourite is pink.)", 1, ""),
        ("Your favourite colour is red, while your brother-in-law likes black best.", 1, ""),
        ("It's red, not pink.", 1, ""),
        ("Pink.", 0, "settles on pink, which is the favourite of the user's aunt"),
        ("Your favourite colour is **black**.", 0, "black, which is the favourite of the user's brother-in-law"),
        ("Red or pink.", 0, "it hedges, which is the favourite of the user's aunt"),
        ("Pink, like your aunt's.", 0, "settles on pink, which is the favourite of the user's aunt"),
        ("Your aunt's favourite colour is pink.", 0, "settles on no colour"),
        ("Your aunt's favourite is red.", 0, "settles on no colour"),
        ("Blue.", 0, "settles on blue"),
        ("I don't know yours; your aunt likes pink.", 0, "settles on no colour"),
    ],
)
def test_another_persons_colour_is_wrong_and_the_reason_says_whose(reply: str, score: float, reason: str) -> None:
    grade = graded("colours", COLOURS, reply)
    assert grade.score == score, grade.reason
    assert reason in grade.reason
    assert ("favourite of" in grade.reason) == ("favourite of" in reason)


def test_another_persons_name_item_meaning_and_way_are_wrong_and_the_reasons_say_whose() -> None:
    names = {"names": ["Ada", "Ben"], "similar": [["vet", "Cora"]]}
    grade = graded("name_list", names, '["Ada", "Ben", "Cora"]')
    assert grade.score == pytest.approx(2 / 3)
    assert grade.reason.endswith("wrong Cora; other people's: Cora (the user's vet)")

    shopping = {"list": {"leek": 2}, "similar": [["vet", "mop", 3]]}
    grade = graded("shopping", shopping, '[{"item": "leek", "quantity": 2}, {"item": "mops", "quantity": 3}]')
    assert grade.score == pytest.approx(2 / 3)
    assert grade.reason.endswith("invented mops; on other people's lists: mops (the user's vet)")

    script = make_scenario("spy_meeting", {"similar": 3}).make(Random(0))
    sender, place = script.facts["similar"][0]
    grade = graded("spy_meeting", script.facts, f"Place: {place}.")
    assert grade.score == 0
    assert f"{place} (from {sender}, for another spy)" in grade.reason

    town = {"places": ["Inn", "Mill", "Well"], "legs": [["north", 2], ["east", 1]], "unit": "km", "similar": [["vet", 2, "east", 4]]}
    grade = graded("locations", town, "From the Inn go 2 km north to the Mill, then 4 km east to the Well.")
    assert grade.score == 0
    assert grade.reason.endswith("as if a way in the town of the user's vet were in it")


def test_spans_are_kept_with_eight_of_each_and_what_a_span_cannot_hold_is_said(tmp_path: Path) -> None:
    suite = load_suite("ltm").apply_changes(["similar=8"], [], [], None)
    made = plan_run(RunSettings(suite=suite, span=2_000, seed=1, agent="oracle"), tmp_path)
    (outcome,) = trio.run(lambda: play_plans([made]))
    assert [(test.id, test.reason) for test in outcome.result.tests if test.score != 1 or not test.certified] == []
    assert {test.scenario: test.numbers["similar"] for test in outcome.result.tests if test.numbers} == dict.fromkeys(NAMES, 8)
    many = load_suite("ltm").apply_changes(["colours.similar=50"], [], ["colours"], 1)
    assert "tokens, but the span is 2,000" in _refused(RunSettings(suite=many, span=2_000, seed=1, agent="oracle"), tmp_path)


def _refused(settings: RunSettings, out: Path) -> str:
    from longspan.simulator.base.errors import InputError

    with pytest.raises(InputError) as refused:
        plan_run(settings, out)
    return str(refused.value)
