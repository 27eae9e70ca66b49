"""Reads which value of a kind of fact a reply settles on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from longspan.scenarios.shared.lists import words
from longspan.scenarios.shared.others import without_others
from longspan.simulator.grading.dates import MONTHS, dates
from longspan.simulator.grading.settled_answers import settled_words

__all__ = ["KINDS", "LISTS", "PLAIN", "UPDATES", "named", "values"]

PLAIN: Final = ("dog", "locker", "town", "birthday", "drink")
UPDATES: Final = ("trip", "instrument")
LISTS: Final = ("lent",)
KINDS: Final = (*PLAIN, *UPDATES, *LISTS)

_LIST: Final = {"dog": "dogs", "town": "towns", "drink": "drinks", "trip": "countries", "instrument": "instruments", "lent": "things"}
_DAYS: Final = 28
"""Days of a month that are birthdays, so that each month has all of them."""

_UNITS: Final = "zero one two three four five six seven eight nine".split()
_TEENS: Final = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety".split()


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
    not count, unless that is all it says. Takes time linear in the reply and never raises."""
    others = [person for person in words("people") if who not in person and person not in who]
    return _settled(without_others(reply, others), kind, expected) or _settled(reply, kind, expected)


def _settled(reply: str, kind: str, expected: Sequence[str]) -> list[str]:
    if kind == "birthday":
        return _birthdays(reply, expected[0])
    if kind == "locker":
        return _numbers(reply, expected[0])
    return settled_words(reply, values(kind))


def _numbers(reply: str, expected: str) -> list[str]:
    """Return the numbers that a reply settles on. The expected one may be spelled out, or have a mark or a space between its digits."""
    text = re.sub(r"(?<!\d)(\d)[ -](\d)[ -](\d)(?!\d)", r"\1\2\3", reply)
    for spelled in _spelled_out(int(expected)):
        text = re.sub(rf"\b{spelled}\b", expected, text, flags=re.IGNORECASE)
    return settled_words(text, dict.fromkeys(re.findall(r"\d{1,9}", text)))


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


def _birthdays(reply: str, expected: str) -> list[str]:
    """Return the expected date if it is all that a reply names; else the dates that it names. "3/4" is read as either of two dates."""
    found = [f"{day} {month.title()}" for month, day in (date.split() for date in dates(reply))]
    day, month = expected.split()
    number = MONTHS.index(month.lower()) + 1
    swapped = f"{number} {MONTHS[int(day) - 1].title()}" if int(day) <= 12 else expected
    return [expected] if expected in found and {expected, swapped} >= set(found) else found
