"""contains_nearly: finds a quotation if at most one word in eight differs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longspan.simulator.reading.matching import contains_nearly

PHRASE = "one two three four five six seven eight"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (PHRASE, True),
        (f"zero {PHRASE} nine", True),
        ("«One two, three four!» Five six\nseven *eight*", True),
        ("one two three five six seven eight", True),
        ("two three four five six seven eight", True),
        ("one two three four five six seven", True),
        ("one two three four and five six seven eight", True),
        ("one two three 4 five six seven eight", True),
        ("one two three 4 five six 7 eight", False),
        ("one two three five six seven", False),
        ("one two three four ... five six seven eight " * 2, True),
        ("eight seven six five four three two one " * 50, False),
        ("", False),
    ],
)
def test_one_word_in_eight_may_differ(text: str, found: bool) -> None:
    assert contains_nearly(text, PHRASE) is found


def test_a_short_phrase_must_match_exactly() -> None:
    assert contains_nearly("And so: to be or not to be!", "to be or not to be")
    assert not contains_nearly("to be or not be", "to be or not to be")


def test_an_empty_phrase_or_text_never_matches() -> None:
    assert not contains_nearly("anything", "")
    assert not contains_nearly("... --- ...", "?!")


@given(st.lists(st.sampled_from("abcde"), min_size=8, max_size=20), st.lists(st.sampled_from("abcdef")), st.data())
def test_a_phrase_with_a_word_left_out_is_found_anywhere(phrase: list[str], around: list[str], data: st.DataObject) -> None:
    gap = data.draw(st.integers(0, len(phrase) - 1))
    said = phrase[:gap] + phrase[gap + 1 :]
    assert contains_nearly(" ".join(around + said + around), " ".join(phrase))
