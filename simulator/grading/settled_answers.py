"""Tells an answer from a hedge: which of several candidates a reply settles on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from longspan.simulator.grading.matching import plain

__all__ = ["settled_words"]

ASSERTED, TOLD, DATED, DENIED = range(4)
"""How a clause speaks of what it names: as so now; as said or so once; as past; as not so."""

_MARKERS = (  # the first that a clause holds says how it speaks
    (
        DENIED,
        "not|no longer|never|neither|nor|(?:is|was|are|were|do|does|did|has|have|had|ca|could|wo|would|should)nt|cannot|unsure|unclear"
        "|instead of|rather than|anything but|other than|except|used to|any ?more|formerly",
    ),
    (
        ASSERTED,
        "now|current|currently|present|presently|today|nowadays|these days|recent|recently|latest|newest|last|final|finally|still",
    ),
    (
        DATED,
        "previous|previously|former|earlier|before|initial|initially|original|originally|at first|first|once|ago|old|past|prior|until",
    ),
    (
        TOLD,
        r"was|were|had|been|said|told|gave|given|went|became|chose|chosen|spoke|spoken|\w\w+ed|then|later|next|after",
    ),
)
_SPEAKS = [(how, re.compile(rf"\b(?:{words})\b")) for how, words in _MARKERS]

_CLAUSES = re.compile(
    r"(?P<joint>[,/&|]|->|→|\b(?:and|or|plus|also)\b)"  # between what is enumerated
    r"|(?P<head>[:\n*•])"  # before and after a title, an item of a list, bold print
    r"|[.!?;()\[\]…—–]|\s-+\s"
    r"|\b(?:but|yet|however|although|though|while|whereas|because|since|if|unless)\b"
    r"|(?=\b(?:not|instead of|rather than|anything but|other than)\b)",
    re.IGNORECASE,
)
_OWN = re.compile(r"\b(?:is|are|s|it|this|that|remains|stays|i|you|your|" + "|".join(words for _, words in _MARKERS) + r")\b")
"""What a clause holds that says something of its own and does not just go on with an enumeration."""
_POSSESSIVE = re.compile(r"(?<=\w)['\u2019]s\b")
_FILLING = frozenset("a an the even maybe perhaps possibly".split())


def settled_words(text: str, candidates: Iterable[str]) -> list[str]:
    """The candidates that `text` settles on, in the order of the candidates: one where it answers, several where it hedges.

    They must stand as whole words; of overlapping ones the longest counts ("sky blue" does not name blue). What a clause
    denies or calls over is never settled on ("not blue", "it used to be blue"). Of the rest, what is said to be so
    counts; where nothing is, what is reported ("you said red"); and where nothing is, what is dated to the past
    ("earlier you said red"). So a reply that tells how things changed and names how they stand settles on one. Takes
    time in proportion to the text, and never raises.
    """
    text = _POSSESSIVE.sub(" s", text)  # "red's my choice" names red
    words = {plain(word): word for word in candidates}
    named = re.compile(r"\b(?:" + "|".join(map(re.escape, sorted(filter(None, words), key=len, reverse=True))) + r")\b")
    if not any(words) or not named.search(plain(text)):
        return []
    tiers: dict[str, int] = {}
    for clause, how in _spoken(text, named):
        for match in named.finditer(clause):
            left = clause[max(0, match.start() - 5) : match.start()] == "from "  # "changed from blue to red"
            tiers[match.group()] = min(DATED if left else how, tiers.get(match.group(), DENIED))
    best = min(tiers.values(), default=DENIED)
    return [word for key, word in words.items() if best < DENIED and tiers.get(key) == best]


def _spoken(text: str, named: re.Pattern[str]) -> Iterator[tuple[str, int]]:
    """The clauses that name a candidate, in plain words, and how each speaks.

    One that goes on with an enumeration speaks as the one before ("not red, green or blue"; "earlier: red, green").
    """
    previous, enumerates = "", False
    for clause, link in _clauses(text):
        found = named.search(clause)
        if not found:
            previous, enumerates = clause, False
            continue
        linked = link == "head" or (link == "joint" and enumerates)
        bare = _FILLING.issuperset(clause[: found.start()].split()) and not _OWN.search(clause)
        if not (linked and bare):
            previous = clause
        enumerates = True
        yield clause, _how(previous)


def _clauses(text: str) -> Iterator[tuple[str, str]]:
    """The clauses of `text` in plain words, each with what links it to the one before: "joint", "head" or ""."""
    at, link = 0, ""
    for cut in _CLAUSES.finditer(text):
        clause = plain(text[at : cut.start()])
        if clause:
            yield clause, link
        kind = cut.lastgroup or ""
        if clause:
            link = kind
        elif link != kind:
            link = "joint" if link and kind else ""
        at = cut.end()
    if clause := plain(text[at:]):
        yield clause, link


def _how(clause: str) -> int:
    return next((how for how, words in _SPEAKS if words.search(clause)), ASSERTED)
