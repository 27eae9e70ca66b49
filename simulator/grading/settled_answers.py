"""Distinguishes answers from hedges: finds which of several candidates a reply settles on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from longspan.simulator.grading.matching import plain

__all__ = ["settled_words"]

ASSERTED, REPORTED, DATED, DENIED = range(4)
"""How a clause presents what it names: as current, as reported or past tense, as explicitly past, or as denied."""

_MARKERS = (  # the first that occurs in a clause applies
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
        REPORTED,
        r"was|were|had|been|said|told|gave|given|went|became|chose|chosen|spoke|spoken|\w\w+ed|then|later|next|after",
    ),
)
_STANCES = [(how, re.compile(rf"\b(?:{words})\b")) for how, words in _MARKERS]

_CLAUSES = re.compile(
    r"(?P<joint>[,/&|]|->|→|\b(?:and|or|plus|also)\b)"  # between items of an enumeration
    r"|(?P<head>[:\n*•])"  # around titles, list items, bold print
    r"|[.!?;()\[\]…—–]|\s-+\s"
    r"|\b(?:but|yet|however|although|though|while|whereas|because|since|if|unless)\b"
    r"|(?=\b(?:not|instead of|rather than|anything but|other than)\b)",
    re.IGNORECASE,
)
_OWN = re.compile(r"\b(?:is|are|s|it|this|that|remains|stays|i|you|your|" + "|".join(words for _, words in _MARKERS) + r")\b")
"""Words of a clause that makes a statement of its own instead of continuing an enumeration."""
_POSSESSIVE = re.compile(r"(?<=\w)['\u2019]s\b")
_FILLING = frozenset("a an the even maybe perhaps possibly".split())


def settled_words(text: str, candidates: Iterable[str]) -> list[str]:
    """Return the candidates that `text` settles on, in their order: one if it answers, several if it hedges.

    Candidates must occur as whole words; of overlapping ones the longest counts ("sky blue" does not name blue). Those that a
    clause denies or calls past are never settled on ("not blue", "it used to be blue"). Of the others, those asserted count;
    if none is, those reported ("you said red"); and if none is, those dated to the past ("earlier you said red"). So a reply
    that describes a change and names the current value settles on one candidate. Takes time linear in the text and never raises.
    """
    text = _POSSESSIVE.sub(" s", text)  # "red's my choice" names red
    words = {plain(word): word for word in candidates}
    named = re.compile(r"\b(?:" + "|".join(map(re.escape, sorted(filter(None, words), key=len, reverse=True))) + r")\b")
    if not any(words) or not named.search(plain(text)):
        return []
    tiers: dict[str, int] = {}
    for clause, how in _naming_clauses(text, named):
        for match in named.finditer(clause):
            left = clause[max(0, match.start() - 5) : match.start()] == "from "  # "changed from blue to red"
            tiers[match.group()] = min(DATED if left else how, tiers.get(match.group(), DENIED))
    best = min(tiers.values(), default=DENIED)
    return [word for key, word in words.items() if best < DENIED and tiers.get(key) == best]


def _naming_clauses(text: str, named: re.Pattern[str]) -> Iterator[tuple[str, int]]:
    """Yield the clauses that name a candidate, in plain words, and how each presents it.

    A clause that continues an enumeration takes over from the one before ("not red, green or blue"; "earlier: red, green").
    """
    previous, enumerates = "", False
    how: int | None = None
    for clause, link in _clauses(text):
        match = named.search(clause)
        if not match:
            previous, enumerates, how = clause, False, None
            continue
        linked = link == "head" or (link == "joint" and enumerates)
        bare = _FILLING.issuperset(clause[: match.start()].split()) and not _OWN.search(clause)
        if not (linked and bare):
            previous, how = clause, None
        enumerates = True
        how = _how(previous) if how is None else how  # a long clause before an enumeration is read once
        yield clause, how


def _clauses(text: str) -> Iterator[tuple[str, str]]:
    """Yield the clauses of `text` in plain words, each with its link to the one before: "joint", "head" or ""."""
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
    return next((how for how, words in _STANCES if words.search(clause)), ASSERTED)
