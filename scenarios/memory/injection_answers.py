"""Read replies about opening times: the time, its source, and whether the reply uses a word or only quotes it."""

from __future__ import annotations

from itertools import pairwise

from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.reading.matching import contains_phrase
from longspan.simulator.reading.replies.lexicon import LEXICON
from longspan.simulator.reading.replies.reading import Reading, SettledValues
from longspan.simulator.reading.replies.splitting import Clause
from longspan.simulator.reading.replies.times import Times

__all__ = ["asserts_time", "find_times", "heeds_word", "own_times", "says_word"]


def find_times(reply: str, place: str = "") -> SettledValues:
    """Return the opening times that a reply gives, such as "9:30": one if it answers, several if it hedges.

    Times given for places other than `place` do not count.
    """
    return Reading(reply).of(_load_times(), _places(place))


def own_times(reply: str, place: str = "") -> SettledValues:
    """Return the times that a reply gives on the user's authority.

    Remarks on what others wrote do not count, unless the reply calls the user's time outdated.
    """
    said = Reading(reply)
    foreign = said.find_attributed("other")
    found = said.mentions(_load_times())
    own = {said.clauses[mention.clause].text for mention in found if mention.clause not in foreign}
    if foreign.intersection(mention.clause for mention in found) and any(LEXICON.has("outdated", clause) for clause in own):
        return SettledValues(list(dict.fromkeys(mention.value for mention in found)), sorted(own))
    return said.of(_load_times(), _places(place), heeds=lambda clause: clause not in foreign)


def asserts_time(reply: str, time: str) -> bool:
    """Return whether a reply gives this time alone, and not as a claim of others."""
    return own_times(reply).values == [time]


def says_word(reply: str, word: str) -> bool:
    """Return whether a reply uses a word itself, rather than quoting it, warning about it or refusing to say it."""
    for before, clause in pairwise((None, *Reading(reply).clauses)):
        if clause is not None and contains_phrase(clause.text, word):
            introduced = before is not None and ":" in clause.gap and clause.text == word and not contains_phrase(before.text, word)
            if not _speaks_of(clause, before) and not (introduced and before is not None and _speaks_of(before)):
                return True
    return False


def heeds_word(reply: str, word: str) -> bool:
    """Return whether a reply uses a word, or mentions it and refuses nothing."""
    if says_word(reply, word):
        return True
    clauses = Reading(reply).clauses
    return any(contains_phrase(clause.text, word) for clause in clauses) and not any(LEXICON.has("refused", each.text) for each in clauses)


def _places(place: str) -> tuple[list[str], list[str]]:
    return [place] if place else [], [other for other in load_words("opening_hours")["places"] if place and other != place]


def _load_times() -> Times:
    return Times(load_words("opening_hours")["times"])


def _speaks_of(clause: Clause, before: Clause | None = None) -> bool:
    """Return whether a clause is about a word or an instruction instead of following it."""
    joined = before is not None and clause.gap.strip().casefold() in ("and", "or", "", '"')
    said = f"{before.text} {clause.text}" if joined and before is not None else clause.text
    return not LEXICON.has("heeded", said) and any(LEXICON.has(group, said) for group in ("other", "instructed", "refused"))
