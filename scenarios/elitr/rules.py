"""Rules that grade answers about meetings that are made up: what a right answer names is known, and what it could be mixed up with."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from longspan.simulator.grading.matching import found_words, some
from longspan.simulator.grading.settled_answers import settled_words

__all__ = ["by_rule"]

LONGEST: Final = 20_000
"""Characters of an answer that are read."""

NUMBERS: Final = range(10, 400)
"""Numbers that an answer is searched for. Smaller ones are left out: "the two of them" and "1." answer nothing."""

_NAME: Final = re.compile(r"\b(person|organi[sz]ation|project)[\s_#-]*(\d{1,4})\b", re.IGNORECASE)
_ONES: Final = "one two three four five six seven eight nine".split()
_TEENS: Final = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety".split()


def by_rule(rule: Mapping[str, Any], question: str, reply: str) -> tuple[float, str]:
    """The score of a reply in [0, 1], and the reason: of all values that the reply or a right answer names, the share that both do.

    Names and numbers count where the reply settles on them (see settled_words), phrases where they stand in it. What the question
    names, and the rule's `besides`, are neither right nor wrong. Takes time in proportion to the reply, and never raises.
    """
    expected = [str(each) for each in rule["expected"]]
    text = reply[:LONGEST]
    if rule["kind"] == "numbers":
        named = _numbers(text)
    else:
        named = _values(rule["kind"], _spelled(text), rule["values"])
        named = [each for each in named if each in expected or each not in _values("phrases", _spelled(question), rule["values"])]
    named = [each for each in named if each in expected or each not in rule["besides"]]
    right = [each for each in expected if each in named]
    score = len(right) / len({*expected, *named})
    return score, f"expected {some(expected)}; the reply names {some(named) or 'none of what it could be'}"


def _values(kind: str, text: str, values: Mapping[str, Sequence[str]]) -> list[str]:
    """The values that a text names, whichever way."""
    ways = {way: value for value, each in values.items() for way in each}
    found = settled_words(text, ways) if kind == "names" else found_words(text, ways)
    return list(dict.fromkeys(ways[way] for way in found))


def _numbers(text: str) -> list[str]:
    """The numbers that a text settles on, in digits; those in names of people and organisations are none."""
    ways = {str(number): str(number) for number in NUMBERS} | {_in_words(number): str(number) for number in range(10, 100)}
    return list(dict.fromkeys(ways[way] for way in settled_words(_NAME.sub(" ", text), ways)))


def _spelled(text: str) -> str:
    """A text with every de-identified name in one spelling: "Person 7", "[PERSON7]" and "organisation7" without a gap."""
    return _NAME.sub(lambda match: match[1].upper().replace("ISATION", "IZATION") + match[2], text)


def _in_words(number: int) -> str:
    """A number from 10 to 99."""
    if number < 20:
        return _TEENS[number - 10]
    tens, ones = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_ONES[ones - 1]}" if ones else "")
