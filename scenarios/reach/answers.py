"""Reads which value of a kind of fact a reply settles on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from functools import cache
from typing import Final

from longspan.scenarios.shared.lists import words
from longspan.simulator.grading.dates import MONTHS, Days
from longspan.simulator.grading.reading.reading import MANY, Reading
from longspan.simulator.grading.reading.values import Findable, Values, figured

__all__ = ["KINDS", "LISTS", "PLAIN", "ROLES", "UPDATES", "classify", "named", "values"]

PLAIN: Final = ("dog", "locker", "town", "birthday", "drink")
UPDATES: Final = ("trip", "instrument")
LISTS: Final = ("lent",)
KINDS: Final = (*PLAIN, *UPDATES, *LISTS)

ROLES: Final[Mapping[str, str]] = words("reach")["roles"]
"""People by what they do for the user, in words of their own: "the person who looks after my teeth" for the dentist."""
_TO_USER: Final = {"my": "your", "me": "you"}
_SPELLED: Final = {
    re.sub(r"\b(?:my|me)\b", lambda said: _TO_USER[said[0]], role.partition(" who ")[2]): person for person, role in ROLES.items()
}
"""How a reply refers to these people: "looks after your teeth"."""

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
    reading, known = _read(reply, kind, expected)
    return reading.of(known, whose, spelled=_SPELLED).values


def classify(reply: str, kind: str, stated: Sequence[str], found: Sequence[str], heard: Set[str]) -> str:
    """Return the outcome of a question (see `contract.rungs.Rung`).

    `stated`: the values of the fact in question, the newest last. `found`: the values that the reply settles on. `heard`: all values of the
    kind that the conversation had stated before the question.
    """
    strangers = [value for value in found if value not in heard]
    if kind in LISTS:
        wrong = [value for value in found if value not in stated]
        if not wrong and found:
            return "right" if len(found) == len(stated) else "part"
        if found and len(found) <= len(stated):
            return "other" if strangers else "confused"
    elif len(found) == 1:
        if found[0] in stated:
            return "right" if found[0] == stated[-1] else "old"
        return "other" if strangers else "confused"
    if len(found) > 1:
        return "several"
    reading, known = _read(reply, kind, sorted(heard))
    return "several" if len(heard & set(reading.named(known))) > 1 else "none"  # such as all that was ever stated, about everybody


def _read(reply: str, kind: str, likely: Sequence[str]) -> tuple[Reading, Findable]:
    """Return a reply with the values that it may name. Notations that can be read in two ways are read as a `likely` value."""
    if kind == "birthday":
        return Reading(reply), Days(likely)
    if kind == "locker":
        reply = figured(reply, likely)
        return Reading(reply), Values(re.findall(r"\d{1,9}", reply))
    return Reading(reply), Values(values(kind))
