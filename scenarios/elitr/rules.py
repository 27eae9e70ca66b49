"""Grade answers about generated meetings by rules, where the right answers and the likely confusions are known."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from longspan.simulator.base.words import NUMBERS
from longspan.simulator.reading.matching import found_words, join_some
from longspan.simulator.reading.replies.reading import settled_words

__all__ = ["by_rule"]

SEARCHED: Final = range(10, 400)
"""Numbers to search an answer for. Smaller ones are ignored, because "the two of them" and "1." answer nothing."""

_NAME: Final = re.compile(r"\b(person|organi[sz]ation|project)[\s_#-]*(\d{1,4})\b", re.IGNORECASE)


def by_rule(rule: Mapping[str, Any], question: str, reply: str) -> tuple[float, str]:
    """Return the score of a reply in [0, 1] and the reason.

    The score is the number of values that both the reply and a right answer name, as a share of the values that either names. Names and
    numbers count if the reply gives them as its answer (see settled_words), phrases if it contains them. Values in the question and the
    rule's `besides` are neither right nor wrong. Runs in time linear in the length of the reply, and never raises.
    """
    expected = [str(value) for value in rule["expected"]]
    if rule["kind"] == "numbers":
        named = _numbers(reply)
    else:
        named = _values(rule["kind"], _normalise_names(reply), rule["values"])
        named = [
            value for value in named if value in expected or value not in _values("phrases", _normalise_names(question), rule["values"])
        ]
    named = [value for value in named if value in expected or value not in rule["besides"]]
    right = [value for value in expected if value in named]
    score = len(right) / len({*expected, *named})
    return score, f"expected {join_some(expected)}; the reply names {join_some(named) or 'no possible answer'}"


def _values(kind: str, text: str, values: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the values that `text` names in any form."""
    ways = {way: value for value, value_ways in values.items() for way in value_ways}
    named = settled_words(text, ways) if kind == "names" else found_words(text, ways)
    return list(dict.fromkeys(ways[way] for way in named))


def _numbers(text: str) -> list[str]:
    """Return the numbers that `text` gives as its answer, in digits. Numbers in names of people and organisations do not count."""
    ways = {str(number): str(number) for number in SEARCHED} | {word: str(value) for word, value in NUMBERS.items() if value >= 10}
    return list(dict.fromkeys(ways[way] for way in settled_words(_NAME.sub(" ", text), ways)))


def _normalise_names(text: str) -> str:
    """Return `text` with de-identified names in one spelling: "Person 7" becomes "PERSON7"."""
    return _NAME.sub(lambda match: match[1].upper().replace("ISATION", "IZATION") + match[2], text)
