"""Determines whose value each mention is: "5691 is the garage door's", "7454 (bicycle lock), 5691 (garage door)"."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, final

from longspan.simulator.reading.replies.mentions import Mention
from longspan.simulator.reading.replies.splitting import BRACKET, COMMA, NONE, SENTENCE, TURN, Clause
from longspan.simulator.reading.replies.values import Values

__all__ = ["YOU", "Whole", "find_subjects", "user_names"]

Whole = tuple[Sequence[str], Sequence[str]]
"""The names of a subject, and the names of all others."""
YOU: Final = ("you", "your", "yours")
"""How a reply addresses the user."""
_PEOPLE: Final = (
    "friend mother mum mom father dad wife husband partner son daughter child kid girlfriend boyfriend twin stepmother stepfather"
    " roommate teacher coach"
).split()


def user_names(people: Iterable[str]) -> Whole:
    """Return the names of the user, and the names of people around the user: "your aunt" for each of `people`, "your friend" and so on."""
    return YOU, [f"your {person}" for person in dict.fromkeys([*people, *_PEOPLE])]


@final
class _Place(NamedTuple):
    """A named subject, and its position: clause number, and offset in that clause's text."""

    subject: str
    clause: int
    start: int


_LIKENED: Final = re.compile(
    r"\b(?:(?<!not the )(?<!more )(?<!sounds )(?<!looks )(?:like|same as|just as)"
    r"|not(?! (?:the same|like|just))|(?:present|gift|surprise) from) (?:\w+ ){0,3}$"
)
"""Words before a subject that is compared, ruled out, or the giver of a present: "red, like your aunt's", "not Ada's"."""
_ADDRESSED: Final = re.compile(
    r" (?:(?:may|might|could|must|probably) )?(?:be )?(?:re|means?|meant|asked|ask|said|say|told|wrote|want|mentioned|see|know|think"
    r"|thinking|mixing|confus\w+)\b"
)
"""Words after a "you" that refers to the conversation, not to the user's property: "you mean your aunt's"."""
_GIVEN: Final = re.compile(r"\b(?:gave|give|giving|told|tell|telling|show|showed|offer|offered|sent|remind) $")
"""Words before such a "you"."""
LONGEST: Final = 60
"""The number of characters searched before a subject."""
NEAR: Final = 3
"""The number of subjects considered on each side of a value."""
WITHIN: Final = 8
"""The most clauses between a value and its subject."""


def find_subjects(clauses: Sequence[Clause], mentions: Sequence[Mention], names: Values) -> list[str | None]:
    """Return the subject of each mention, or None if the reply does not say whose the value is.

    A value belongs to the subject in its sentence with the fewest and weakest marks between them. If two are equally near, a subject
    without a value wins. Values in an enumeration may share a subject. A subject in a heading or a question owns the values after it.
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
    first: dict[int, int] = {}  # each subject's first value
    for _, number, which in pairs:
        if number not in found and which not in first:
            found[number], first[which] = which, number
    for (part, *_), number, which in pairs:
        if number not in found and (part == NONE or mentions[first[which]].run == mentions[number].run):
            found[number] = which
    return [places[found[number]].subject if number in found else None for number in range(len(mentions))]


def _near(clauses: Sequence[int], clause: int) -> range:
    """Return the indices of the places nearest to a clause: a few on each side. `clauses` is the sorted clause number of each place."""
    return range(max(0, bisect_left(clauses, clause) - NEAR), min(len(clauses), bisect_right(clauses, clause) + NEAR))[: 4 * NEAR]


def _cost(clauses: Sequence[Clause], mention: Mention, place: _Place) -> tuple[int, int, int] | None:
    """Return the distance of a subject from a value, or None if it is too far.

    The distance is the strongest mark between them, then the number of marks, then the number of characters.
    """
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
    """Return the strength of the gap before a clause. A relative clause counts as part of the clause before it."""
    if clause.part <= TURN and "which" in clause.gap:
        return NONE
    if clause.part == COMMA and clause.text.startswith(("who ", "that is ", "that s ", "whose ")):
        return BRACKET
    return clause.part


def _leads(clauses: Sequence[Clause], at: int, to: int) -> bool:
    """Return whether the clause at `at` is a heading or a question that the clause at `to` follows directly."""
    if to - at > 3:
        return False
    gaps = [clause.gap for clause in clauses[at + 1 : to + 1]]
    return (
        any("?" in gap for gap in gaps)
        or any(":" in gap or "\n" in gap for gap in gaps[:1])
        or clauses[to].text.startswith(("it s ", "it is ", "that s ", "that is "))
    )
