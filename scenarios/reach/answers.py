"""Reads which value of a kind of fact a reply settles on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

from longspan.scenarios.shared.lists import words
from longspan.simulator.grading.dates import MONTHS, Days
from longspan.simulator.grading.reading.reading import Reading
from longspan.simulator.grading.reading.values import Values

__all__ = ["KINDS", "LISTS", "PLAIN", "UPDATES", "named", "values"]

PLAIN: Final = ("dog", "locker", "town", "birthday", "drink")
UPDATES: Final = ("trip", "instrument")
LISTS: Final = ("lent",)
KINDS: Final = (*PLAIN, *UPDATES, *LISTS)

_LIST: Final = {"dog": "dogs", "town": "towns", "drink": "drinks", "trip": "countries", "instrument": "instruments", "lent": "things"}
_DAYS: Final = 28
"""Days of a month that are birthdays, so that each month has all of them."""

MANY: Final = 3
"""How many other people a reply may speak of and still answer a question about one."""

_UNITS: Final = "zero one two three four five six seven eight nine".split()
_TEENS: Final = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety".split()


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
        return []
    whose = ([who], [person for person in words("people") if who not in person and person not in who])
    if kind == "birthday":
        return Reading(reply).of(Days(expected), whose).values
    if kind == "locker":
        reply = _figured(reply, int(expected[0]))
        return Reading(reply).of(Values(re.findall(r"\d{1,9}", reply)), whose).values
    return Reading(reply).of(Values(values(kind)), whose).values


def _figured(reply: str, number: int) -> str:
    """Return a reply with the number in figures, where it is spelled out or has a mark or a space between its digits."""
    reply = re.sub(r"(?<!\d)(\d)[ -](\d)[ -](\d)(?!\d)", r"\1\2\3", reply)
    for spelled in _spelled_out(number):
        reply = re.sub(rf"\b{spelled}\b", str(number), reply, flags=re.IGNORECASE)
    return reply


def _spelled_out(number: int) -> list[str]:
    """Return patterns of a number of three digits in words: "four hundred and twelve", "four one two", "four twelve"."""
    hundreds, rest = divmod(number, 100)
    tens, units = divmod(rest, 10)
    first = _UNITS[hundreds]
    last = (
        _UNITS[rest]
        if rest < 10
        else _TEENS[tens * 10 + units - 10]
        if rest < 20
        else _TENS[tens - 2] + (f"[- ]{_UNITS[units]}" if units else "")
    )
    found = [rf"{first}[- ]{_UNITS[tens]}[- ]{_UNITS[units]}"]
    if rest:
        found += [rf"{first} hundred(?: and)? {last}", *([rf"{first}[- ]{last}"] if rest >= 10 else [])]
    else:
        found.append(rf"{first} hundred")
    return found
