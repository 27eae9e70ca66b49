"""Lists, tables and corrections in the forms of today's models, for each scenario that asks for a list."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.timing import growth

from longspan.scenarios.ltm.locations.steps import lay_out
from longspan.scenarios.ltm.things_listed import things_listed
from longspan.scenarios.memory.decisions_listed import read_decisions
from longspan.scenarios.memory.habits import HABITS
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.contract.graded_record import MAX_CHARACTERS, Exchange, Record
from longspan.simulator.contract.plugins import make_scenario

BASKET = {"balloon": 1, "paper clip": 10, "saucer": 4}
NAMES = ["Margaret", "Rupert", "Geoffrey"]
DEEDS = [each["deed"] for each in load_words("decisions")[:5]]


def score(name: str, facts: Mapping[str, Any], reply: str) -> float:
    grade = make_scenario(name, {}).grade(facts, Record((Exchange(1, "?", reply, asks=True),)))
    assert grade.score is not None
    return grade.score


@pytest.mark.parametrize(
    "reply",
    [
        "*   **Balloons**\n    *   Quantity: 1\n*   **Paper clips**\n    *   Quantity: 10\n*   **Saucers**\n    *   Quantity: 4",
        "- item: balloon\n  quantity: 1\n- item: paper clip\n  quantity: 10\n- item: saucer\n  quantity: 4",
        "item,quantity\nballoon,1\npaperclips,10\nsaucers,4",
        "- 1 balloon\n- 10 paper clips (8 in message 2, 2 more in message 5)\n- 4 saucers (6 less 2)",
        "10:11 +2 balloons\n10:15 -1\n10:20 +10 paper clips\n10:22 +4 saucers\n\n\u21d2 **1 balloon, 10 paper clips, 4 saucers**",
        "Still to buy: balloon one piece, paper clips ten pieces, saucer four pieces.",
    ],
)
def test_a_shopping_list_is_right(reply: str) -> None:
    assert score("shopping", {"list": BASKET, "changes": []}, reply) == 1


def test_a_thing_that_no_list_has_is_invented() -> None:
    assert score("shopping", {"list": BASKET, "changes": []}, "1 balloon, 10 paper clips, 4 saucers and 4 cups.") < 1


def test_times_before_names_are_no_names() -> None:
    assert score("name_list", {"names": NAMES}, "- 22:03 \u2013 Margaret\n- 22:04 \u2013 Rupert\n- 22:05 \u2013 Geoffrey") == 1


def test_headings_in_bold_head_lines_without_bullets() -> None:
    stands, reversed_ = DEEDS[:3], DEEDS[3]
    reply = f"**Still stands**\n{chr(10).join(stands)}\n\n**Reversed**\n{reversed_}"
    assert read_decisions(reply) == (stands, [])


def test_a_table_is_also_known_by_its_room() -> None:
    assert (
        read_decisions("Varnish the dining room table.")
        == read_decisions("Varnish the table in the dining room.")
        == (["varnish the dining table"], [])
    )


def test_what_was_an_idea_first_and_then_decided_stands() -> None:
    assert read_decisions(f"- {DEEDS[0]}: first just an idea in April, then decided on 3 May") == (DEEDS[:1], [])


def test_the_last_of_several_titles_is_the_one_that_is_used() -> None:
    title = HABITS["title"]
    assert title.find_choices("The Right Reverend Bishop X., we request the pleasure of your company", {}) == ["Bishop"]
    assert title.find_choices("Dear Bishop or Professor X.", {}) != ["Bishop"]


PIECES = [
    "| a ",
    "3 May: ",
    "[ ] ",
    '<a b="1"',
    "1 km east - no, ",
    "10 to ",
    "a: b: ",
    "\n\n- ",
    "\nUser: a",
    "let me know if ",
    '["Ada", ',
    "IDLE – ",
]


@pytest.mark.parametrize(
    "read",
    [lambda text: things_listed(text, ("leek",)), lambda text: lay_out(text, "km"), read_decisions],
    ids=["things", "steps", "digest"],
)
def test_time_to_read_a_list_grows_linearly(read: Callable[[str], object]) -> None:
    def record(size: int) -> None:
        read(json.dumps({f"k{number}": "word" for number in range(size // 100)}))

    assert growth(record, MAX_CHARACTERS // 5) < 20
    for piece in PIECES:
        assert growth(lambda size, piece=piece: read((piece * size)[:size]), MAX_CHARACTERS // 25, times=5) < 15, piece  # type: ignore[misc]
