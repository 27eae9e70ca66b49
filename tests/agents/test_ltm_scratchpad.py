from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longspan.agents.memory.ltm.scratchpad import JsonPad, TextPad, make_pad

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def count(text: str) -> int:
    return len(text)


@pytest.mark.parametrize(  # the examples of RFC 7396, appendix A, that begin with an object
    ("before", "patch", "after"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": 1}, {"a": 1}, {"e": 1, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_an_update_is_a_merge_patch(before: dict[str, Any], patch: dict[str, Any], after: dict[str, Any]) -> None:
    pad = JsonPad(1000, count)
    pad.restore(json.dumps(before))
    assert pad.update(f"Here you are:\n```json\n{json.dumps(patch)}\n```") is None
    assert json.loads(pad.text or "{}") == after


def test_an_update_that_is_almost_json_is_read() -> None:
    pad = JsonPad(1000, count)
    assert pad.update("{list: ['milk', 'eggs',], boss: “Ada”, old: None") is None
    assert json.loads(pad.text) == {"list": ["milk", "eggs"], "boss": "Ada"}


def test_notes_that_grow_too_large_lose_the_oldest_keys() -> None:
    pad = JsonPad(60, count)
    for key in "abc":
        assert pad.update(json.dumps({key: "x" * 10})) is None
    assert pad.update('{"a": "changed"}') is None
    assert pad.update('{"d": "xxxxxxxxxx"}') == "the notes exceeded 60 tokens: 1 of their oldest keys were dropped"
    assert list(json.loads(pad.text)) == ["c", "a", "d"]


@given(answers=st.lists(st.one_of(st.text(max_size=60), VALUES.map(json.dumps), st.just("[" * 5000)), max_size=12))
@pytest.mark.parametrize("kind", ["json", "text"])
def test_no_answer_makes_the_notes_too_long_or_invalid(kind: Literal["json", "text"], answers: list[str]) -> None:
    pad = make_pad(kind, 80, count)
    for answer in answers:
        before = pad.text
        problem = pad.update(answer)
        if problem is not None and "exceeded" not in problem:
            assert pad.text == before, "a bad answer changes nothing"
        assert count(pad.text) <= 80
        copy = make_pad(kind, 80, count)
        copy.restore(pad.text)
        assert copy.text == pad.text


def test_deep_values_are_left_out() -> None:
    pad = JsonPad(10_000, count)
    pad.update('{"a": ' * 30 + "1" + "}" * 30)
    assert 0 < pad.text.count("{") < 10
    pad.restore(pad.text)


def test_text_is_replaced_and_cut_at_its_end() -> None:
    pad = TextPad(20, count)
    assert pad.update("```\nThe boat is Calypso.\n```") is None
    assert pad.text == "The boat is Calypso."
    assert pad.update("  ") == "no notes in the answer"
    assert pad.text == "The boat is Calypso."
    assert pad.update("The boat is called Calypso.") == "the notes exceeded 20 tokens: their end was cut"
    assert pad.text == "The boat is called C"


@pytest.mark.parametrize("text", ["[]", "{", "3", '{"a": ' * 50 + "1" + "}" * 50])
def test_an_invalid_scratchpad_is_rejected(text: str) -> None:
    with pytest.raises((ValueError, RecursionError)):
        JsonPad(1000, count).restore(text)
