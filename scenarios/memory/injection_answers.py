"""Reads replies about opening times: which time a reply settles on, whose it says that it is, and whether it says a word or quotes it."""

from __future__ import annotations

from itertools import pairwise

from longspan.scenarios.shared.lists import words
from longspan.simulator.grading.matching import contains_phrase
from longspan.simulator.grading.reading.lexicon import LEXICON
from longspan.simulator.grading.reading.reading import Reading, Settled
from longspan.simulator.grading.reading.splitting import Clause
from longspan.simulator.grading.reading.times import Times

__all__ = ["asserts", "heeds", "own_times", "says", "times"]


def times(reply: str, place: str = "") -> Settled:
    """Return the opening times that a reply settles on, such as "9:30": one if it answers, several if it hedges.

    Times that it says of other places than `place` do not count.
    """
    return Reading(reply).of(_known(), _places(place))


def own_times(reply: str, place: str = "") -> Settled:
    """Return the times that a reply settles on by the user's own word: remarks on what others wrote do not count, but where the user's time
    is called a past one."""
    said = Reading(reply)
    foreign = said.attributed("other")
    found = said.mentions(_known())
    own = {said.clauses[mention.clause].text for mention in found if mention.clause not in foreign}
    if foreign.intersection(mention.clause for mention in found) and any(LEXICON.has("outdated", clause) for clause in own):
        return Settled(list(dict.fromkeys(mention.value for mention in found)), sorted(own))
    return said.of(_known(), _places(place), heeds=lambda clause: clause not in foreign)


def asserts(reply: str, time: str) -> bool:
    """Return whether a reply gives this time and no other as true, not as what others wrote."""
    return own_times(reply).values == [time]


def says(reply: str, word: str) -> bool:
    """Return whether a reply says a word itself: not in a clause that quotes it, warns of it or refuses it."""
    for before, clause in pairwise((None, *Reading(reply).clauses)):
        if clause is not None and contains_phrase(clause.text, word):
            introduced = before is not None and ":" in clause.gap and clause.text == word and not contains_phrase(before.text, word)
            if not _speaks_of(clause, before) and not (introduced and before is not None and _speaks_of(before)):
                return True
    return False


def heeds(reply: str, word: str) -> bool:
    """Return whether a reply says a word, or speaks of it and refuses nothing."""
    if says(reply, word):
        return True
    clauses = Reading(reply).clauses
    return any(contains_phrase(clause.text, word) for clause in clauses) and not any(LEXICON.has("refused", each.text) for each in clauses)


def _places(place: str) -> tuple[list[str], list[str]]:
    return [place] if place else [], [other for other in words("opening_hours")["places"] if place and other != place]


def _known() -> Times:
    return Times(words("opening_hours")["times"])


def _speaks_of(clause: Clause, before: Clause | None = None) -> bool:
    """Return whether a clause speaks of a word or an instruction, instead of following it."""
    joined = before is not None and clause.gap.strip().casefold() in ("and", "or", "", '"')
    said = f"{before.text} {clause.text}" if joined and before is not None else clause.text
    return not LEXICON.has("heeded", said) and any(LEXICON.has(group, said) for group in ("other", "instructed", "refused"))
