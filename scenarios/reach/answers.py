"""Read which value a reply gives for a fact, and classify wrong answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from functools import cache
from typing import Final

from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.reading.dates import MONTHS, Days
from longspan.simulator.reading.replies.reading import MANY, Reading
from longspan.simulator.reading.replies.values import Findable, Values, join_figures

__all__ = ["KINDS", "LISTS", "PLAIN", "ROLES", "UPDATES", "classify_answer", "find_values", "list_values"]

PLAIN: Final = ("dog", "locker", "town", "birthday", "drink")
UPDATES: Final = ("trip", "instrument")
LISTS: Final = ("lent",)
KINDS: Final = (*PLAIN, *UPDATES, *LISTS)

ROLES: Final[Mapping[str, str]] = load_words("reach")["roles"]
"""Roles of people in the user's life, each with a paraphrase that shares no content word: the dentist is "the person who looks after my
teeth"."""
_TO_USER: Final = {"my": "your", "me": "you"}
_SPELLED: Final = {
    re.sub(r"\b(?:my|me)\b", lambda said: _TO_USER[said[0]], role.partition(" who ")[2]): person for person, role in ROLES.items()
}
"""The same paraphrases in the second person, as a reply would use them: "looks after your teeth"."""

_LIST: Final = {"dog": "dogs", "town": "towns", "drink": "drinks", "trip": "countries", "instrument": "instruments", "lent": "things"}
_DAYS: Final = 28
"""Only days that every month has are used for birthdays."""


@cache
def _people() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(sorted(map(re.escape, load_words('people')), key=len, reverse=True))})\b", re.IGNORECASE)


def list_values(kind: str) -> Sequence[str]:
    """Return every value that a fact of this kind can have."""
    if kind == "locker":
        return [str(number) for number in range(100, 1000)]
    if kind == "birthday":
        return [f"{day} {month.title()}" for month in MONTHS for day in range(1, _DAYS + 1)]
    found: list[str] = load_words("reach")[_LIST[kind]]
    return found


def find_values(reply: str, kind: str, expected: Sequence[str], who: str) -> list[str]:
    """Return the values that a reply gives for the user's `who`, in no particular order.

    Values that the reply assigns to other people do not count. A reply that lists more than MANY people is treated as a recital, not an
    answer, and yields nothing. Runs in time linear in the reply and never raises.
    """
    if len({found.lower() for found in _people().findall(reply)} - {who}) > MANY:
        return []  # a recital of everything the agent remembers would otherwise always contain the answer
    whose = ([who], [person for person in load_words("people") if who not in person and person not in who])
    reading, known = _read(reply, kind, expected)
    settled = reading.of(known, whose, spelled=_SPELLED).values
    if kind in LISTS and len(settled) < len(expected):
        # In a list, later items do not replace earlier ones: "First the ladder, then the drill, and finally the tent".
        return reading.find_named(known, whose) or settled
    return settled


def classify_answer(reply: str, kind: str, stated: Sequence[str], found: Sequence[str], heard: Set[str]) -> str:
    """Return the outcome of a question, as defined in `contract.rungs.Rung`.

    `stated`: the values of the fact, newest last. `found`: the values that the reply gives. `heard`: every value of this kind that the
    conversation stated before the question.
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
    # Sorted, because ambiguous numbers depend on the order, and a set's order differs between processes.
    reading, known = _read(reply, kind, sorted(heard))
    return "several" if len(heard & set(reading.find_named(known))) > 1 else "none"  # "several": the reply lists values of many people


def _read(reply: str, kind: str, likely: Sequence[str]) -> tuple[Reading, Findable]:
    """Return the parsed reply and the values to look for. Ambiguous notations, such as 3/4, are read as one of the `likely` values."""
    if kind == "birthday":
        return Reading(reply), Days(likely)
    if kind == "locker":
        reply = join_figures(reply, likely)
        return Reading(reply), Values(re.findall(r"\d{1,9}", reply))
    return Reading(reply), Values(list_values(kind))
