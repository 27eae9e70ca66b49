"""Locations: a town told place by place, and the way past all of its places."""

from __future__ import annotations

import json
import re
from itertools import accumulate, pairwise
from statistics import mean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from longspan.scenarios.ltm.locations.scenario import Locations
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.base.words import plain
from longspan.simulator.contract.graded_record import MAX_CHARACTERS, Exchange, Grade, Record
from longspan.simulator.running.preflight.rehearsal import Rehearsal, rehearse

STEPS = {"north": (0, 1), "east": (1, 0), "south": (0, -1), "west": (-1, 0)}

TOWN: dict[str, Any] = {
    "places": ["Chapel", "Museum", "Theatre", "Harbour Office", "Observatory", "Aquarium"],
    "legs": [["east", 4], ["south", 3], ["west", 2], ["south", 1], ["east", 3]],
    "unit": "km",
}

PIECES = [*TOWN["places"], *"[]{}|()\n1:.,;-", "4 km", "east", "2", "N", "from", "to", "of", "turn left", "in summary"]


def play(seed: int, places: int = 6, reply: str | None = None) -> Rehearsal:
    return rehearse(Locations(places=places), seed=seed, reply=lambda text, ideal: ideal if reply is None else reply)


def grade(reply: str, facts: dict[str, Any] = TOWN) -> Grade:
    return Locations().grade(facts, Record([Exchange(6, "How do I get there?", reply, asks=True)]))


def spots(facts: Any) -> list[tuple[int, int]]:
    """Every kilometre of the way from the first place to the last."""
    steps = (STEPS[way] for way, km in facts["legs"] for _ in range(km))
    return list(accumulate(steps, lambda a, b: (a[0] + b[0], a[1] + b[1]), initial=(0, 0)))


# ---- the test that is made


def test_the_ideal_reply_scores_and_a_silent_one_does_not() -> None:
    for seed in range(50):
        verdict = play(seed).grade
        assert verdict.score == 1, f"seed {seed}"
        assert verdict.reason.endswith("ends there, place by place"), f"seed {seed}"
        assert play(seed, reply="OK.").grade.score == 0, f"seed {seed}"


@pytest.mark.parametrize("places", [2, 3, 12, 30])
def test_other_numbers_of_places_work_as_well(places: int) -> None:
    for seed in range(5):
        rehearsal = play(seed, places)
        assert rehearsal.grade.score == 1, f"seed {seed}"
        assert len(set(rehearsal.script.facts["places"])) == places == len(rehearsal.script.lines) - 1, f"seed {seed}"


@pytest.mark.parametrize("places", [1, 0, -6, 31, "all", None])
def test_senseless_parameters_are_refused(places: object) -> None:
    with pytest.raises(ValidationError):
        Locations(places=places)  # type: ignore[arg-type]


def test_the_same_seed_gives_the_same_test_and_another_seed_another() -> None:
    assert play(1).script == play(1).script
    assert len({json.dumps(play(seed).script.facts) for seed in range(20)}) == 20


def test_the_way_is_1_to_4_km_each_time_and_never_touches_itself() -> None:
    for seed in range(100):
        facts = play(seed).script.facts
        assert all(way in STEPS and 1 <= km <= 4 for way, km in facts["legs"]), f"seed {seed}"
        passed = spots(facts)
        assert len(set(passed)) == len(passed), f"seed {seed}"


def test_no_leg_is_the_one_before_again() -> None:
    for seed in range(100):
        assert all(a != b for a, b in pairwise(play(seed, places=7).script.facts["legs"])), f"seed {seed}"


def test_all_directions_and_distances_are_used() -> None:
    legs = [tuple(leg) for seed in range(60) for leg in play(seed).script.facts["legs"]]
    assert set(legs) == {(way, km) for way in STEPS for km in (1, 2, 3, 4)}


def test_each_line_tells_one_place_and_the_question_needs_all_but_the_first() -> None:
    for seed in range(20):
        script = play(seed).script
        facts, lines = script.facts, script.lines
        assert facts["places"][0] in lines[0].text, f"seed {seed}"
        for line, (before, place), (way, km) in zip(lines[1:-1], pairwise(facts["places"]), facts["legs"], strict=True):
            assert all(f" {part} " in f" {plain(line.text)} " for part in (plain(before), plain(place), way, f"{km} km")), f"seed {seed}"
        assert [line.asks for line in lines] == [False] * 6 + [True], f"seed {seed}"
        # It names the place in the middle, as the question and the next line do, and tells no way.
        assert not lines[0].needle, f"seed {seed}"
        assert all(line.needle for line in lines[1:-1]), f"seed {seed}"
        assert lines[-1].needs is None, f"seed {seed}"
        assert {place for place in facts["places"] if place in lines[-1].text} == {facts["places"][0], facts["places"][-1]}, f"seed {seed}"
        assert "kilometres" in lines[-1].text, f"seed {seed}"


def test_needles_told_back_as_they_were_are_directions_too() -> None:
    for seed in range(50):
        rehearsal = play(seed)
        told = " ".join(line.text for line in rehearsal.script.lines[:-1])
        assert grade(told, dict(rehearsal.script.facts)).score == 1, told


def test_the_question_gives_nothing_away() -> None:
    for seed in range(20):
        rehearsal = play(seed)
        assert grade(rehearsal.record.answer.text, dict(rehearsal.script.facts)).score == 0


def test_lines_are_short() -> None:
    count = Tokenizer().count
    for seed in range(30):
        lines = play(seed).script.lines
        assert all(10 <= count(line.text) <= 30 for line in lines[:-1])
        assert count(lines[-1].text) <= 60
        assert count(lines[-1].ideal) <= 80


def test_replies_to_other_tests_score_no_better_than_chance() -> None:
    tests = [play(seed) for seed in range(51)]
    scores = [Locations().grade(a.script.facts, b.record).score or 0.0 for a, b in pairwise(tests)]
    assert mean(scores) <= Locations().chance(tests[0].script.facts) + 0.1


def test_facts_survive_a_round_trip_through_json() -> None:
    for seed in range(5):
        rehearsal = play(seed)
        facts = json.loads(json.dumps(rehearsal.script.facts))
        assert Locations().grade(facts, rehearsal.record) == rehearsal.grade, f"seed {seed}"


def test_places_are_told_apart_and_name_no_direction() -> None:
    places = load_words("locations")
    assert len({place.casefold() for place in places}) == len(places) >= 30
    for place in places:
        assert not re.search("north|south|east|west|left|right|km", place, re.IGNORECASE)
        assert [other for other in places if plain(place) in plain(other)] == [place]


# ---- grading: each leg, and the end


@pytest.mark.parametrize(
    ("reply", "score", "why"),
    [
        ("4 km east, 3 km south, 2 km west, 1 km south, 3 km east", 1, "ends there, place by place"),
        ("Go straight there: 5 km east and 4 km south.", 0, "ends there without a leg to the Museum"),
        ("4 km south, then 5 km east to the Aquarium", 0, "ends there without a leg to the Museum"),
        ("4 km east, 3 km south, 2 km west, 1 km north, sorry, south, 3 km east", 1, "ends there, place by place"),
        ("East: 4 km (Museum). South: 3 km (Theatre). West 2 km; south 1 km; east 3 km", 1, "ends there, place by place"),
        ("1 km east, 3 km east, 3 km south, 2 km west, 1 km south, 3 km east", 1, "ends there, place by place"),
        ("4 km east, 3 km south, 2 km west, 1 km south, 3 km west", 0, "the reply's route ends 1 km west and 4 km south of it"),
        ("4 miles east, 3 miles south, 2 miles west, 1 mile south, 3 miles east", 0, "ends 8.05 km east and 6.44 km south"),
        ("4 km east and back: 4 km west", 0, "ends 0 km of it"),
        ("", 0, "gives no directions"),
        ("I'm sorry, but I don't recall where those places are.", 0, "gives no directions"),
        ("From the Chapel to the Museum, Theatre, Harbour Office, Observatory and Aquarium.", 0, "gives no directions"),
        ("Head east, then south, then west, then south, then east.", 0, "gives no directions"),
        ("Head east to the Museum, then 3 km south, 2 km west, 1 km south, 3 km east.", 0, "no distance for the leg east to the Museum"),
        ("3 or 4 km east, 3 km south, 2 km west, 1 km south, 3 km east", 0, "more than one distance or direction for the leg east"),
        ("Turn left and go 4 km, turn right and go 3 km.", 0, "turns before it says which way to face"),
        (
            "4 km east, 3 km south, 2 km west, 1 km south, 3 km east. Alternatively, take 4 km east, then 3 km south to the Aquarium.",
            0,
            "gives routes that end at different points",
        ),
        ("".join(f"Alternatively {k} km east. " for k in range(1, 80)), 0, "gives more than 50 different routes"),
    ],
)
def test_the_legs_and_the_end_of_the_way_decide(reply: str, score: float, why: str) -> None:
    verdict = grade(reply)
    assert verdict.score == score
    assert verdict.reason.startswith("the Aquarium is 5 km east and 4 km south of the Chapel; ")
    assert why in verdict.reason
    assert verdict.turns == (6,)


def test_legs_in_one_direction_may_name_it_once_and_may_not_be_one() -> None:
    facts = {"places": ["Chapel", "Museum", "Theatre", "Aquarium"], "legs": [["north", 2], ["north", 1], ["east", 4]], "unit": "km"}
    assert grade("North: 2 km (Museum), 1 km (Theatre). East: 4 km (Aquarium).", facts).score == 1
    assert grade("Go 2 km north to the Museum, another 1 km to the Theatre, and 4 km east to the Aquarium.", facts).score == 1
    assert grade("Go 3 km north past the Museum to the Theatre, and 4 km east to the Aquarium.", facts).score == 0


def test_by_the_papers_rules_only_the_end_counts() -> None:
    record = Record([Exchange(6, "How do I get there?", "Go straight there: 5 km east and 4 km south.", asks=True)])
    assert Locations(rules="paper").grade(TOWN, record).score == 1
    assert Locations(rules="longspan").grade(TOWN, record).score == 0


def test_a_town_measured_in_miles_is_graded_in_miles() -> None:
    facts = TOWN | {"unit": "miles"}
    assert grade("4 miles east, 3 mi south, 2 west, 1.0 miles south, 3 miles E", facts).score == 1
    assert grade("4 km east, 3 km south, 2 km west, 1 km south, 3 km east", facts).score == 0


def test_a_town_that_is_not_ours_is_graded_from_the_facts_alone() -> None:
    facts = {"places": ["Gate of the Sun", "East Market", "Old Mill"], "legs": [["north", 2], ["south", 1]], "unit": "km"}
    reply = "From Gate of Sun walk 2 km north to the East Market, then turn around: 1 km south to the Old Mill."
    assert grade(reply, facts).score == 1


@settings(max_examples=200, deadline=None)
@given(st.text() | st.lists(st.sampled_from(PIECES)).map(" ".join))
def test_no_reply_makes_the_grader_raise(reply: str) -> None:
    assert grade(reply).score in (0, 1)


@pytest.mark.parametrize("piece", ["4 km east ", "E4", '[{"a": "b', "1. east 4\n", "| east | 4 |\n", "Museum -> ", "9", "north-", "("])
def test_as_much_as_is_read_of_a_reply_is_no_trouble(piece: str) -> None:
    assert grade(piece * (MAX_CHARACTERS // len(piece))).score == 0
