"""Reads which value of a kind of fact a reply settles on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

from longspan.scenarios.shared.lists import words
from longspan.simulator.grading.dates import MONTHS, Days
from longspan.simulator.grading.reading.reading import MANY, Reading
from longspan.simulator.grading.reading.values import Values, figured

__all__ = ["KINDS", "LISTS", "PLAIN", "UPDATES", "named", "values"]

PLAIN: Final = ("dog", "locker", "town", "birthday", "drink")
UPDATES: Final = ("trip", "instrument")
LISTS: Final = ("lent",)
KINDS: Final = (*PLAIN, *UPDATES, *LISTS)

_LIST: Final = {"dog": "dogs", "town": "towns", "drink": "drinks", "trip": "countries", "instrument": "instruments", "lent": "things"}
_DAYS: Final = 28
"""Days of a month that are birthdays, so that each month has all of them."""


@cache
def _people() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(sorted(map(re.escape, words('people')), key=len, reverse=True))})\b", re.IGNORECASE)


def values(kind: str) -> Sequence[str]:
    """Return the values that facts of a kind may have."""
    if kind == "locker":
        return [str(number) for number in range(100, 1000)]
    if kind == "birthday":
        return [f"{day} {month.title()}" for month in MONTHS for day in range(1, _DAYS + 1)]
    found: list[str] = words("reach")[_LIST[kind]]
    return found


def named(reply: str, kind: str, expected: Sequence[str], who: str) -> list[str]:
    """Return the values that a reply settles on for the user's `who`, in no particular order. What it says of the user's other people does
    not count, and one that goes through many of them answers nothing. Takes time linear in the reply and never raises."""
    if len({found.lower() for found in _people().findall(reply)} - {who}) > MANY:
        return []  # it repeats what it was told, of whatever kind
    whose = ([who], [person for person in words("people") if who not in person and person not in who])
    if kind == "birthday":
        return Reading(reply).of(Days(expected), whose).values
    if kind == "locker":
        reply = figured(reply, expected)
        return Reading(reply).of(Values(re.findall(r"\d{1,9}", reply)), whose).values
    return Reading(reply).of(Values(values(kind)), whose).values
