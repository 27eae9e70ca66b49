"""Directions in all the forms that replies take. The town is always the same; only the wording of the route changes."""

from __future__ import annotations

import json
import math
import re
from itertools import accumulate, pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longspan.scenarios.ltm.locations.directions import BEARINGS, read_legs
from longspan.scenarios.ltm.locations.routes import HOME, Point, build_routes, displacement, settle_route
from longspan.scenarios.ltm.locations.steps import lay_out

PLACES = ["Chapel", "Museum", "Theatre", "Harbour Office", "Observatory", "Aquarium"]
END = Point(5, -4)
"""The way is 4 km east, 3 km south, 2 km west, 1 km south and 3 km east."""

Way = list[tuple[str, int]]


def walk(text: str, unit: str = "km") -> tuple[Point | None, str]:
    """Where the text's way ends, or None and why it has none."""
    route, trouble = settle_route(build_routes(read_legs(text, PLACES, unit), PLACES[0]), PLACES[-1])
    return (None if route is None else Point(round(route.end.east, 2), round(route.end.north, 2))), trouble


FORMS = Path(__file__).with_name("data").joinpath("directions.txt").read_text("utf-8")
"""The same way, told in many forms: a line with a form's name, then its text."""


def told() -> list[Any]:
    pieces = re.split(r"^== (.*)\n", FORMS, flags=re.MULTILINE)[1:]
    return [pytest.param(text.strip(), id=name) for name, text in zip(pieces[::2], pieces[1::2], strict=True)]


@pytest.mark.parametrize("text", told())
def test_the_way_is_followed_in_whatever_form_it_is_told(text: str) -> None:
    assert walk(text) == (END, "")


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("", "gives no directions"),
        ("OK.", "gives no directions"),
        ("You go from the Chapel via the Museum and the Theatre to the Aquarium.", "gives no directions"),
        ("It is on the east side, 13 km in total.", "gives no directions"),
        ("Here you go: 1. 2. 3. 4. 5.", "gives no directions"),
        ("Don't go 4 km east.", "gives no directions"),
        ("Head east to the Museum, 3 km south to the Theatre, and 2 km west.", "gives no distance for the leg east to the Museum"),
        ("Go 3-4 km east.", "gives more than one distance or direction for the leg east"),
        ("Go one or two kilometres northwest.", "gives more than one distance or direction for the leg northwest"),
        ("Go 3 km or 4 km east.", "gives more than one distance or direction for the leg east"),
        ("Go 4 km north, or maybe east, to the Museum.", "gives more than one distance or direction for the leg north"),
        ("Go 4 km east to the Museum. Or was it 3 km?", "gives more than one distance or direction for the leg east"),
        ("Turn left and go 4 km.", "turns before it says which way to face"),
        ("Go 4 km east. Alternatively, go 3 km east.", "gives routes that end at different points"),
        ("Either 5 km east and 4 km south, or you could go 5 km west and 4 km south.", "gives routes that end at different points"),
        ("1. 4 km east\n2. 3 km south\n\n1. 4 km east\n2. 2 km south", "gives routes that end at different points"),
        ("4 km east to the Museum, 3 km south to the Theatre. From the Museum, 2 km south to the Theatre.", "gives routes that end at"),
        ("4 km east to the Museum, 3 km south to the Theatre. Alternatively: 4 km east to the Aquarium.", "gives routes that end at"),
    ],
)
def test_what_is_no_one_way_says_why(text: str, trouble: str) -> None:
    end, said = walk(text)
    assert end is None
    assert said.startswith(trouble)


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("4 km east, then 4 km east.", Point(8, 0)),
        ("Go 4 km east (4 km east) to the Museum.", Point(4, 0)),
        ("2 km north to the Museum, then 2 km north to the Theatre", Point(0, 4)),
        ("1. 2 km north\n2. 2 km north", Point(0, 4)),
        ("half a km east, one and a half kilometres north", Point(0.5, 1.5)),
        ("a couple of kilometres east, another kilometre east", Point(3, 0)),
        ("2.5 km N, 1,5 km W, \u00bd km E", Point(-1, 2.5)),
        ("1 mile north", Point(0, 1.61)),
        ("2 km NE", Point(1.41, 1.41)),
        ("2 km north-northeast", Point(0.77, 1.85)),
        ("North 1. East 2. South 3.", Point(2, -2)),
        ("twenty-one km west", Point(-21, 0)),
        ("Alternatively, go 2 km east.", Point(2, 0)),
        ("2 km east. Wait, that's wrong, it is 3 km east.", Point(3, 0)),
        ("Overall, it is 3 km east and 1 km north.", Point(3, 1)),
    ],
)
def test_where_ways_end(text: str, end: Point) -> None:
    assert walk(text) == (end, "")


def test_the_same_way_in_other_units_is_no_other_way() -> None:
    assert walk("4 km east, 3 km south. Alternatively, 2.49 miles east, 1.86 miles south.")[1] == ""


def test_miles_are_what_the_question_is_in() -> None:
    assert walk("4 miles east, 3 mi south, then 1.609344 km west", unit="miles") == (Point(3, -3), "")
    assert walk("4 east, 3 south", unit="miles") == (Point(4, -3), "")


def test_legs_say_where_they_begin_and_end() -> None:
    text = "From the Chapel, go 4 km east to the Museum. The Theatre is 3 km south of the Museum. Harbour Office (2 km west)"
    legs = read_legs(text, PLACES)
    assert [(leg.origin, leg.place, leg.described) for leg in legs] == [
        ("Chapel", "Museum", False),
        ("Museum", "Theatre", True),
        (None, "Harbour Office", False),
    ]


def test_a_row_becomes_a_line() -> None:
    table = "| Step | Direction | Distance (miles) | To |\n|---|---|---|---|\n| 1 | E | 4 | Museum |"
    assert lay_out(table, "km") == "\x1e1\x1f 4 miles east to Museum"
    assert lay_out('{"from": "Chapel", "direction": "north", "distance": 2}', "miles").strip() == "from Chapel 2 miles north"


# ---- any town, in any of these styles


def told_in(style: int, way: Way) -> str:
    """The way in one of STYLES styles, a leg at a time."""
    steps = list(zip(way, pairwise(PLACES), strict=True))
    match style:
        case 0:
            return ", ".join(f"{km} km {name}" for name, km in way)
        case 1:
            return ". ".join(f"Go {name} for {km} kilometres to the {b}" for (name, km), (_, b) in steps)
        case 2:
            return "\n".join(f"{k}. {name.title()} {km} km" for k, (name, km) in enumerate(way, 1))
        case 3:
            return " ".join(f"The {b} is {km} km {name} of the {a}." for (name, km), (a, b) in steps)
        case 4:
            return "\n".join(f"{a} \u2192 {b}: {km} km {name[0].upper()}" for (name, km), (a, b) in steps)
        case 5:
            return "\n".join(f"| {b} | {name} | {km} |" for (name, km), (_, b) in steps)
        case 6:
            return json.dumps([{"direction": name, "distance": km, "to": b} for (name, km), (_, b) in steps])
        case _:
            return "; ".join(f"from the {a} {km} km {name} to the {b}" for (name, km), (a, b) in steps)


STYLES = 8


def town(seed: int) -> Way:
    """Five legs, none back or like the one before."""
    random, way = Random(seed), []
    while len(way) < 5:
        leg = (random.choice(["north", "east", "south", "west"]), random.randint(1, 4))
        if not way or (leg != way[-1] and math.dist(displacement(BEARINGS[leg[0]], 1), displacement(BEARINGS[way[-1][0]], -1)) > 0.5):
            way.append(leg)
    return way


def end_of(way: Way) -> Point:
    end = list(accumulate((displacement(BEARINGS[name], km) for name, km in way), Point.plus, initial=HOME))[-1]
    return Point(round(end.east, 2), round(end.north, 2))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, STYLES - 1))
def test_any_way_ends_where_it_should(seed: int, style: int) -> None:
    way = town(seed)
    assert walk(told_in(style, way)) == (end_of(way), "")


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, STYLES - 1), st.integers(0, 4), st.integers(1, 3))
def test_a_leg_told_wrongly_ends_elsewhere(seed: int, style: int, leg: int, more: int) -> None:
    way = town(seed)
    wrong = [*way[:leg], (way[leg][0], way[leg][1] + more), *way[leg + 1 :]]
    assert walk(told_in(style, wrong))[0] != end_of(way)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000), st.permutations(range(STYLES)))
def test_a_way_told_twice_in_two_styles_is_one_way(seed: int, styles: list[int]) -> None:
    way = town(seed)
    text = f"{told_in(styles[0], way)}\n\nIn summary:\n\n{told_in(styles[1], way)}"
    assert walk(text) == (end_of(way), "")
