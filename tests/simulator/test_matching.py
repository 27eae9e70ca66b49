"""The matching rules that graders share."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.timing import growth

from longspan.simulator.base.words import number, plain
from longspan.simulator.reading.matching import contains_phrase, found_words, join_some, json_values, split_json

MARKS = st.sampled_from([*"[]{}()\"'`,:;\\\n #/.\u201c\u201d\u2018\u2019", "```", "...", "//", '"a"', "'b'", "null", "12", "item", " and "])
TEXTS = st.one_of(st.text(), st.lists(MARKS, max_size=60).map("".join))
NUMBERS = st.one_of(st.integers(-(10**17), 10**17), st.floats(-1e9, 1e9).map(lambda x: round(x, 3)))
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=20)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
    max_leaves=12,
)
ROOTS = st.one_of(st.lists(JSON, max_size=5), st.dictionaries(st.text(max_size=8), JSON, max_size=5))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("Red.", "red"),
        ("  RED\n\tand  Blue!", "red and blue"),
        ("Don't", "dont"),
        ("Don\u2019t", "dont"),
        ("caf\u00e9 \u00e0 la cr\u00e8me", "cafe a la creme"),
        ("cafe\u0301", "cafe"),
        ("Stra\u00dfe", "strasse"),
        ("snake_case-word", "snake case word"),
        ("\u201cquoted\u201d", "quoted"),
        ("**bold** `code`", "bold code"),
        ("tur\u00adquoise\u200b", "turquoise"),
        ("\ufb01ne \uff21\uff22", "fine ab"),
        ("\u0130stanbul", "istanbul"),
        ("\u2764\ufe0f", ""),
    ],
)
def test_plain_text(text: str, expected: str) -> None:
    assert plain(text) == expected


@given(TEXTS)
def test_plain_text_stays_plain(text: str) -> None:
    assert plain(plain(text)) == plain(text)
    assert plain(text.upper()) == plain(text.upper().lower())
    assert all(char == " " or char.isalnum() for char in plain(text))


@given(st.text())
def test_plain_ignores_how_accents_are_encoded(text: str) -> None:
    assert plain(unicodedata.normalize("NFC", text)) == plain(unicodedata.normalize("NFD", text))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It is shared.", []),
        ("Infrared!", []),
        ("RED", ["red"]),
        ("blue, then red", ["red", "blue"]),
        ("a red-haired man", ["red"]),
        ("Red's the one", ["red"]),
        ("the sky\nblue sea", ["blue", "sky blue"]),
        ("sky, blue", ["blue", "sky blue"]),
        ("reds", []),
        ("", []),
    ],
)
def test_found_words(text: str, found: list[str]) -> None:
    assert found_words(text, ["red", "blue", "sky blue", ""]) == found


@pytest.mark.parametrize(
    ("text", "phrase", "stands"),
    [
        ("Well: mind the gap!", "Mind the gap", True),
        ('"Mind, the\u00a0gap"', "mind the gap", True),
        ("mind the gaps", "mind the gap", False),
        ("mind the big gap", "mind the gap", False),
        ("the bird\u2019s nest", "The bird's nest", True),
        ("anything", "", False),
        ("", "mind the gap", False),
    ],
)
def test_contains_phrase(text: str, phrase: str, stands: bool) -> None:
    assert contains_phrase(text, phrase) is stands


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2", 2),
        (" 2.50 ", 2.5),
        ("-3", -3),
        ("+4", 4),
        ("two", 2),
        ("Twelve", 12),
        ("twenty-one", 21),
        ("ninety nine", 99),
        ("a", 1),
        ("a dozen", 12),
        ("a couple", 2),
        ("zero", 0),
        ("", None),
        ("two three", None),
        ("twenty-twenty", None),
        ("2x", None),
        ("1e5", None),
        ("nan", None),
        ("inf", None),
        ("\u00bd", None),
        ("9" * 5000, None),
    ],
)
def test_numbers(text: str, value: float | None) -> None:
    assert number(text) == value


@given(TEXTS)
def test_any_text_is_a_number_or_not(text: str) -> None:
    value = number(text)
    assert value is None or -1e40 <= value <= 1e40


@pytest.mark.parametrize(
    ("text", "values"),
    [
        # JSON
        ("[]", [[]]),
        ("{}", [{}]),
        ('["a", "b"]', [["a", "b"]]),
        ('[1, -2.5, 1e3, true, false, null, {"a": [{}]}]', [[1, -2.5, 1000.0, True, False, None, {"a": [{}]}]]),
        ('["tab\\t", "quote \\"x\\"", "\\u00e9", "\\ud83d\\ude00"]', [["tab\t", 'quote "x"', "\u00e9", "\U0001f600"]]),
        ('["brackets ] in [ strings", "}"]', [["brackets ] in [ strings", "}"]]),
        # around it
        ('```json\n["a",\n "b"]\n```', [["a", "b"]]),
        ('Here you are: ["a"]. Anything else?', [["a"]]),
        ('["a"] and {"b": 1}', [["a"], {"b": 1}]),
        ('It\'s "quoted, then ["a"]', [["a"]]),
        ('"[\\"a\\", \\"b\\"]"', [["a", "b"]]),
        ('\\["a", "b"\\]', [["a", "b"]]),
        # quote marks
        ("['a', 'b']", [["a", "b"]]),
        ("[\u201ca\u201d, \u201cb\u201d]", [["a", "b"]]),
        ("[\u2018a\u2019, \u2018b\u2019s\u2019]", [["a", "b\u2019s"]]),
        ("[`a`, `b`]", [["a", "b"]]),
        ("['Men's shirt', 'the boys' shoes', 'c']", [["Men's shirt", "the boys' shoes", "c"]]),
        ('["a 5" pipe", "b"]', [['a 5" pipe', "b"]]),
        ("[\"rock 'n' roll\"]", [["rock 'n' roll"]]),
        # commas, comments
        ('["a", "b",]', [["a", "b"]]),
        ('{"a": 1,}', [{"a": 1}]),
        ('["a",, "b"]', [["a", "b"]]),
        ('["a"\n "b"]', [["a", "b"]]),
        ('["a"; "b"]', [["a", "b"]]),
        ('["a", // first\n "b" # second\n]', [["a", "b"]]),
        ('["a", "b", ...]', [["a", "b"]]),
        ('[..., "b"]', [["b"]]),
        ('[ // Here it is...\n "a"]', [["a"]]),
        ("[ // none\n]", [[]]),
        # Python
        ("['a', None, True, False]", [["a", None, True, False]]),
        ("[('a', 2), ('b', 3)]", [[["a", 2], ["b", 3]]]),
        ("{'a', 'b'}", [["a", "b"]]),
        ("{1: 'a', 2: 'b'}", [{"1": "a", "2": "b"}]),
        ('["a": 2, "b": 3]', [{"a": 2, "b": 3}]),
        # left out
        ('{item: "a", quantity: 2}', [{"item": "a", "quantity": 2}]),
        ('{"item": leek, "quantity": 2}', [{"item": "leek", "quantity": 2}]),
        ('["a", b]', [["a", "b"]]),
        ("[a, b]", [["a", "b"]]),
        ('{"a": , "b": 1}', [{"a": None, "b": 1}]),
        # nested, wrongly closed
        ('[["a", ["b"]], []]', [[["a", ["b"]], []]]),
        ('["a", "b"}', [["a", "b"]]),
        ('[{"a": 1], {"b": 2}', [[{"a": 1}], {"b": 2}]),
        # cut off
        ('["a", "b"', [["a", "b"]]),
        ('["a", "b', [["a"]]),
        ('[{"item": "a", "quantity": 1}, {"item": "b", "quant', [[{"item": "a", "quantity": 1}, {"item": "b"}]]),
        ('```\n["a", "b"\n```\nThat is all.', [["a", "b"]]),
        # prose
        ("", []),
        ("No brackets.", []),
        ("[Note]", []),
        ("[sic]", []),
        ("- [x] milk", []),
        ("[...]", []),
        ("[2 minutes ago] You said so.", []),
        ("[2024-06-04 23:19:52] so", []),
        ("[10:30] so", []),
        ("[Speaker's note: hello]", []),
        ('[He said "hello" to me]', []),
        ('["a" is the first]', []),
        ("{smiles}", []),
        ("{smiles: widely}", []),
        ("[link](https://example.org)", []),
        ('[Note: the list is ["a", "b"]]', [["a", "b"]]),
        ('[sic the list: ["a", "b"]', [["a", "b"]]),
        ('[smiles, nods] ["a"]', [["a"]]),
        ('["a", "b"] [1]', [["a", "b"], [1]]),
        ("]]}}", []),
        ("[[[[", []),
    ],
)
def test_json_is_parsed_leniently(text: str, values: list[Any]) -> None:
    assert json_values(text) == values


@given(ROOTS, st.sampled_from([None, 2]), st.booleans())
def test_valid_json_is_parsed_exactly(value: Any, indent: int | None, ascii: bool) -> None:
    assert json_values(json.dumps(value, indent=indent, ensure_ascii=ascii)) == [value]


@given(st.lists(ROOTS, max_size=4))
def test_json_is_found_anywhere(values: list[Any]) -> None:
    assert json_values("Well: " + ". And: ".join(json.dumps(value) for value in values) + '. That\'s "all".') == values


PYTHON = st.recursive(
    st.one_of(st.text("abc \u00e9.!?[]{}:,", max_size=10), st.integers(-99, 99), st.none(), st.booleans()),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(PYTHON, max_size=5))
def test_python_lists_are_read(value: list[Any]) -> None:
    assert json_values(repr(value)) == [value]


@given(TEXTS)
@settings(max_examples=500)
def test_any_text_is_parsed(text: str) -> None:
    values = json_values(text)
    assert all(isinstance(value, (list, dict)) for value in values)
    json.dumps(values).encode()


@given(TEXTS)
@settings(max_examples=500)
def test_text_is_split_without_loss(text: str) -> None:
    pieces = split_json(text)
    assert "".join(piece for piece, _ in pieces) == text
    assert all(piece for piece, _ in pieces)


def test_text_is_split_at_its_json() -> None:
    assert split_json('Go [east], then {"to": "B"}.') == [
        ("Go ", None),
        ("[east]", ["east"]),
        (", then ", None),
        ('{"to": "B"}', {"to": "B"}),
        (".", None),
    ]


def test_an_unclosed_bracket_does_not_swallow_the_text() -> None:
    assert split_json('Go [east, then ["a"] on') == [("Go [east, then ", None), ('["a"]', ["a"]), (" on", None)]


def test_some_lists_a_few_items() -> None:
    assert join_some([]) == ""
    assert join_some(["a", "b"]) == "a, b"
    assert join_some("abcdef", limit=3) == "a, b, c, 3 more"
    assert join_some(["x" * 50]) == "x" * 39 + "\u2026"
    assert join_some(["a\nb", "\ud800"]) == "a b, ?"


SIZE = 10_000_000
SLOW = [
    "[",
    "{",
    "[1,",
    '["a" ',
    '["a"b ',
    "['a'b ",
    "['",
    "[\u201ca\u2018",
    '{"a":',
    "{a ",
    '"',
    "\\",
    "[//",
    '["a", ',
    "[\n'",
    '[\\"',
    "a ",
    "e\u0301\u0316",
    "'s ",
    '{"item": "a", "quantity": 2} ',
    "[" * 30 + "x ",
]


RULES = {"plain": plain, "json": json_values, "split": split_json, "words": lambda text: found_words(text, ["red", "sky blue"])}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("piece", SLOW)
def test_time_is_linear(rule: Callable[[str], object], piece: str) -> None:
    """Ten times the text takes about ten times as long. With quadratic time it would take a hundred times as long."""
    rule("warm up")
    assert growth(lambda size: rule("[" + piece * (size // len(piece))), 30_000) < 40


@pytest.mark.parametrize("text", ["lorem ipsum " * (SIZE // 12), "[" * SIZE, "'" * SIZE], ids=["prose", "brackets", "quotes"])
def test_ten_megabytes(text: str) -> None:
    assert growth(lambda size: (json_values(text[:size]), plain(text[:size])), SIZE // 10) < 40
