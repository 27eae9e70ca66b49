"""Reading a reply, and the score of each star."""

from __future__ import annotations

from random import Random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longspan.scenarios.counting_stars.answers import mark_stars, read_numbers
from longspan.scenarios.counting_stars.stars import Stars, draw_stars

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=5), inner, max_size=6),
    max_leaves=20,
)


def membership(stars: Stars, names: list[int | None], *, reasoning: bool = False) -> float:
    return fmean(mark.membership for mark in mark_stars(stars.right, stars.wrong if reasoning else None, names))


def test_the_example_of_the_paper() -> None:
    found = mark_stars([3, 5, 9], None, [3, 6, 9])
    assert [mark.membership for mark in found] == [1, 0, 1]
    assert [mark.slot for mark in found] == [1, 0, 1]


def test_a_number_left_out_costs_one_star_of_membership_and_all_later_slots() -> None:
    found = mark_stars([3, 5, 9, 14], None, [3, 9, 14])
    assert [mark.membership for mark in found] == [1, 0, 1, 1]
    assert [mark.slot for mark in found] == [1, 0, 0, 0]


def test_the_answer_is_cut_to_the_number_of_stars_and_what_comes_twice_counts_once() -> None:
    assert membership(Stars((3, 5), (4, 6)), [1, 2, 3, 5]) == 0
    assert membership(Stars((3, 5), (4, 6)), [3, 3, 5]) == 0.5
    assert [mark.slot for mark in mark_stars([3, 5], None, [3, 3, 5])] == [1, 0]


@pytest.mark.parametrize(
    "reply",
    [
        '{"owl": [3, 5, 9]}',
        "[3,5,9]",
        'Here it is:\n```json\n{\n  "owl": [3, 5, 9],\n}\n```\nI hope this helps.',
        "{'owl': ['3', '5 ★', '9 stars']}",
        '{"owl": "3, 5, 9"}',
        '{"first": 3, "second": 5, "third": 9}',
        '{"owl": {"counts": [3.0, 5.0, 9.0]}}',
        "[[3], [5], [9]]",
        'The form is {"owl": [n, n, ...]}, so: {"owl": [3, 5, 9]} [as asked]',
        "First [1, 2]. No, the right one is [3, 5, 9].",
        '{"owl": [3, 5, 9',
        '{"猫头鹰"：[3，5，9]}',
        "【３、５、９】",
        '{"猫头鹰": ["3颗", "5颗", "9颗"]}',
        "3, 5, 9",
        "Let me see.\n3, 5, 9.\nThat is all.",
        '{"owl": [3, 5, 9]} "Patience is a lantern." - Ottokar Brindle',
        "[3, 5, 9]\nNote: [1] counted in order.",
        '{"owl": [3, 5, 9]} The owl is young [1], and the third time [2] it looks twice.',
    ],
)
def test_lists_are_read_leniently(reply: str) -> None:
    assert read_numbers(reply) == [3, 5, 9]


NOTHING = ["", "OK.", "[]", "{}", "I saw 3 and 5 and 9.", "[true, null]", "[three, five]", "3 5 9", "{'owl': 'none'}"]


@pytest.mark.parametrize("reply", NOTHING)
def test_nothing_is_read_where_no_list_is(reply: str) -> None:
    assert not [name for name in read_numbers(reply) if name is not None]


def test_a_number_alone_in_brackets_is_a_list_where_there_is_no_other() -> None:
    assert read_numbers('The one star: {"owl": [7]}') == [7]


def test_what_is_no_number_keeps_its_place_in_a_list() -> None:
    assert read_numbers('[3, null, "?", 2.5, 9]') == [3, None, None, None, 9]


@pytest.mark.parametrize(
    ("names", "scores"),
    [
        ([15, 117, 42], [1, 1, 1]),
        ([16, 116, 43], [0.25, 0.25, 0.25]),
        ([15, 16, 117, 116, 42, 43], [0.5, 1, 0]),  # cut to three entries
        ([16, 116, 43, 15, 117, 42], [0.25, 0.25, 0.25]),
        ([15, 16, 43], [0.5, 0, 0.25]),
        ([15, 1, 2, 117], [1, 0, 0]),
        ([15, 1, 2, 16], [1, 0, 0]),
    ],
)
def test_reasoning_weighs_right_and_wrong_counts(names: list[int], scores: list[float]) -> None:
    found = mark_stars([15, 117, 42], [16, 116, 43], names)
    assert [mark.membership for mark in found] == scores


def test_reasoning_slot_by_slot() -> None:
    assert [mark.slot for mark in mark_stars([15, 117, 42], [16, 116, 43], [15, 116, 7])] == [1, 0.25, 0]


DUMPS: dict[str, list[int]] = {
    "all": list(range(1, 129)),
    "from the end": list(range(128, 0, -1)),
    "odd": list(range(1, 129, 2)),
    "one of each block": list(range(2, 129, 4)),
    "two of each block": [n for n in range(1, 129) if n % 4 in (1, 3)],
    "the same again and again": [7] * 1000,
}


@pytest.mark.parametrize("reasoning", [False, True])
@pytest.mark.parametrize("dump", DUMPS)
def test_naming_numbers_without_reading_is_worth_no_more_than_chance(dump: str, reasoning: bool) -> None:
    scores = [membership(draw_stars(Random(seed), 32), list(DUMPS[dump]), reasoning=reasoning) for seed in range(200)]
    assert fmean(scores) <= (0.25 * 1.375 if reasoning else 0.25) + 0.01


@given(st.integers(0, 1000), st.integers(1, 64), st.booleans())
def test_all_right_counts_score_in_full_in_any_order(seed: int, number: int, reasoning: bool) -> None:
    stars = draw_stars(Random(seed), number)
    assert membership(stars, list(stars.right), reasoning=reasoning) == 1
    assert membership(stars, sorted(stars.right), reasoning=reasoning) == 1
    both = [count for pair in zip(stars.wrong, stars.right, strict=True) for count in pair]
    assert membership(stars, [*both], reasoning=True) <= 0.5
    assert membership(stars, [*stars.wrong], reasoning=True) == 0.25


@given(st.lists(st.none() | st.integers(-3, 140), max_size=80), st.integers(0, 50), st.booleans())
def test_marks_lie_in_bounds_and_a_place_is_never_worth_more_than_its_star(names: list[int | None], seed: int, reasoning: bool) -> None:
    stars = draw_stars(Random(seed), 16)
    found = mark_stars(stars.right, stars.wrong if reasoning else None, names)
    assert len(found) == 16
    assert all(0 <= mark.slot <= 1 and 0 <= mark.membership <= 1 for mark in found)
    assert sum(mark.right + mark.wrong for mark in found) <= 16
    assert found == mark_stars(stars.right, stars.wrong if reasoning else None, names[:16])
    if not reasoning:
        assert all(mark.slot <= mark.membership for mark in found)


@given(JSON)
def test_no_json_breaks_reading(value: object) -> None:
    import json

    assert all(name is None or isinstance(name, int) for name in read_numbers(json.dumps(value)))


HOSTILE = ["[" + "9" * 500_000 + "]", "1," * 300_000, '"' + "1." * 300_000, "[" * 200_000, "{1:" * 50_000, "['1" * 50_000]


@pytest.mark.parametrize("reply", HOSTILE)
def test_hostile_replies_are_read_in_time(reply: str) -> None:
    assert len(read_numbers(reply)) <= 100_000
