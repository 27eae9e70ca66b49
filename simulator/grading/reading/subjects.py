"""Tells of whom, or of what, a reply says each value: "5691 is the garage door's", "7454 (bicycle lock), 5691 (garage door)"."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, final

from longspan.simulator.grading.reading.mentions import Mention
from longspan.simulator.grading.reading.splitting import BRACKET, COMMA, NONE, SENTENCE, TURN, Clause
from longspan.simulator.grading.reading.values import Values

__all__ = ["YOU", "Whole", "subjects", "yours"]

Whole = tuple[Sequence[str], Sequence[str]]
"""Names of a subject, and those of all others."""
YOU: Final = ("you", "your", "yours")
"""How a reply speaks of whoever asks."""
_PEOPLE: Final = (
    "friend mother mum mom father dad wife husband partner son daughter child kid girlfriend boyfriend twin stepmother stepfather"
    " roommate teacher coach"
).split()


def yours(people: Iterable[str]) -> Whole:
    """Return the names of whoever asks, and those of their `people` and of others that most have: "your aunt", "your friend"."""
    return YOU, [f"your {person}" for person in dict.fromkeys([*people, *_PEOPLE])]


@final
class _Place(NamedTuple):
    """A subject that is named, and where: its clause, and its first character there."""

    subject: str
    clause: int
    start: int


_LIKENED: Final = re.compile(
    r"\b(?:(?<!not the )(?<!more )(?<!sounds )(?<!looks )(?:like|same as|just as)"
    r"|not(?! (?:the same|like|just))|(?:present|gift|surprise) from) (?:\w+ ){0,3}$"
)
"""Words before a subject that only serves to compare, or is ruled out, or gives something: "red, like your aunt's", "not Ada's"."""
_ADDRESSED: Final = re.compile(
    r" (?:(?:may|might|could|must|probably) )?(?:be )?(?:re|means?|meant|asked|ask|said|say|told|wrote|want|mentioned|see|know|think"
    r"|thinking|mixing|confus\w+)\b"
)
"""Words after "you" that speak of the conversation, and of nothing that is the user's: "you mean your aunt's"."""
_GIVEN: Final = re.compile(r"\b(?:gave|give|giving|told|tell|telling|show|showed|offer|offered|sent|remind) $")
"""Words before such a "you"."""
LONGEST: Final = 60
"""Characters looked at before a subject."""
NEAR: Final = 3
"""Subjects looked at before and after a value, in other clauses."""
WITHIN: Final = 8
"""Clauses looked at between the two."""


def subjects(clauses: Sequence[Clause], mentions: Sequence[Mention], names: Values) -> list[str | None]:
    """Return for each mention of a value the subject that it is said of; None if the reply does not say of what.

    A value goes with the subject that the fewest and weakest marks part it from, in its sentence; of two as near, with one that has no
    other value. Several values have the same one if the reply enumerates them. A subject that a heading or a question names goes with what
    follows it.
    """
    places = [
        _Place(found.value, at, found.start)
        for at, clause in enumerate(clauses)
        for found in names.find(clause.text)
        if not _LIKENED.search(clause.text, max(0, found.start - LONGEST), found.start)
        and not clause.gap.strip().casefold().endswith("unless")
        and not (found.value == "you" and (_ADDRESSED.match(clause.text, found.end) or _GIVEN.search(clause.text[: found.start])))
    ]
    at = [place.clause for place in places]
    pairs = sorted(
        (cost, number, which)
        for number, mention in enumerate(mentions)
        for which in _near(at, mention.clause)
        if (cost := _cost(clauses, mention, places[which])) is not None
    )
    found: dict[int, int] = {}
    first: dict[int, int] = {}  # the value that a subject has
    for _, number, which in pairs:
        if number not in found and which not in first:
            found[number], first[which] = which, number
    for (part, *_), number, which in pairs:
        if number not in found and (part == NONE or mentions[first[which]].run == mentions[number].run):
            found[number] = which
    return [places[found[number]].subject if number in found else None for number in range(len(mentions))]


def _near(clauses: Sequence[int], clause: int) -> range:
    """Return which of the places, by their clauses, are nearest to a clause: a few before it and after it."""
    return range(max(0, bisect_left(clauses, clause) - NEAR), min(len(clauses), bisect_right(clauses, clause) + NEAR))[: 4 * NEAR]


def _cost(clauses: Sequence[Clause], mention: Mention, place: _Place) -> tuple[int, int, int] | None:
    """Return how far a subject is from a value: the strongest mark between them, the number of marks, and characters; None if too far."""
    first, last = sorted((mention.clause, place.clause))
    if last - first > WITHIN:
        return None
    between = clauses[first + 1 : last + 1]
    part = max((_part(clause) for clause in between), default=NONE)
    if part >= SENTENCE and not (place.clause < mention.clause and _leads(clauses, place.clause, mention.clause)):
        return None
    apart = abs(mention.start - place.start) if first == last else sum(len(clause.text) for clause in clauses[first:last])
    return min(part, TURN + 1), len(between), apart


def _part(clause: Clause) -> int:
    """Return how strongly a clause is parted from the one before. A relative clause goes with what it follows."""
    if clause.part <= TURN and "which" in clause.gap:
        return NONE
    if clause.part == COMMA and clause.text.startswith(("who ", "that is ", "that s ", "whose ")):
        return BRACKET
    return clause.part


def _leads(clauses: Sequence[Clause], at: int, to: int) -> bool:
    """Return whether a clause with a subject heads what follows: a line above it, or a question before it, with nothing between."""
    if to - at > 3:
        return False
    gaps = [clause.gap for clause in clauses[at + 1 : to + 1]]
    return any(":" in gap or "?" in gap or "\n" in gap for gap in gaps[:1]) or clauses[to].text.startswith(
        ("it s ", "it is ", "that s ", "that is ")
    )
