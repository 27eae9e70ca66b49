"""A restaurant's menu: which of its items a text names, in full or in part."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, final

from longspan.scenarios.ltm.restaurant.guest_phrases import BEFORE_NOUNS, MANNERS, SIDES
from longspan.simulator.grading.matching import plain

__all__ = ["Item", "Mention", "Menu", "stem", "stems"]

MAX_GAP: Final = 3
"""How many other words may be between two words of an item's name."""

_LINKS = re.compile(r"\s+(?:(?:served|topped|filled|drizzled)\s+)?(?:with|in|on|over)\s+|\s*,\s*")
_FILLERS = frozenset("a and of the with in on over to s la al alla served".split())


def stem(word: str) -> str:
    """Return `word` without its plural ending, so that "potatoes" equals "potato"."""
    for ending, instead in (("ss", "ss"), ("ies", "y"), ("oes", "o"), ("s", "")):
        if word.endswith(ending) and len(word) > 3:
            return word.removesuffix(ending) + instead
    return word


def stems(text: str) -> list[str]:
    """Return the plain words of `text`, stemmed."""
    return [stem(word) for word in plain(text).split()]


@final
@dataclass(frozen=True, slots=True)
class Item:
    """An item of the menu. `words` may name it together; each of `enough` does so alone.

    `noun`: what kind of item it is, if another word says which one ("soup" in "leek soup").
    """

    name: str
    drink: bool
    words: frozenset[str]
    enough: frozenset[str]
    noun: str | None

    @classmethod
    @lru_cache(maxsize=1000)
    def called(cls, name: str, drink: bool) -> Item:
        """Return the item of that name. What follows "with", "in", "on" or "over" does not name it alone."""
        words = frozenset(stems(name)) - _FILLERS
        head = [word for word in stems(_LINKS.split(name, maxsplit=1)[0]) if word not in _FILLERS]
        core = [word for word in head if word not in MANNERS]
        enough = [word for word in core if word not in SIDES] or core or head
        return cls(name, drink, words, frozenset(enough), core[-1] if len(core) > 1 else None)

    def named_by(self, words: Sequence[str], run: Sequence[int]) -> bool:
        """Return whether the words at the positions `run`, all of them the item's, are enough to name it."""
        if not any(words[at] in self.enough for at in run):
            return False
        if self.noun and len(run) == 1 and words[run[0]] in SIDES:
            return False
        first = run[0]
        return not all(words[at] == self.noun for at in run) or first == 0 or words[first - 1] in BEFORE_NOUNS


@final
class Mention(NamedTuple):
    """An item named in a sentence, from word `start` to word `end` (exclusive)."""

    item: Item
    start: int
    end: int


_Candidate = tuple[frozenset[int], Item]
"""Positions of words in a sentence, and the item that they would name."""


@final
class Menu:
    """The drinks and dishes that can be ordered."""

    def __init__(self, drinks: Iterable[str], dishes: Iterable[str]) -> None:
        self.items = [Item.called(name, True) for name in drinks] + [Item.called(name, False) for name in dishes]
        self._with: dict[str, list[Item]] = {}
        for item in self.items:
            for word in item.words:
                self._with.setdefault(word, []).append(item)

    def mentions(self, words: Sequence[str]) -> list[Mention]:
        """Return the items that `words` (stems) name, in order. Words that fit two items equally well name neither."""
        candidates: list[_Candidate] = []
        for item, places in self._places(words).items():
            candidates += [(frozenset(run), item) for run in _runs(words, places) if item.named_by(words, run)]
        return sorted((Mention(item, min(places), max(places) + 1) for places, item in _best(candidates)), key=lambda mention: mention[1:])

    def ambiguous(self, words: Sequence[str]) -> list[str]:
        """Return the words that would name an item if they did not fit several."""
        named = {at for mention in self.mentions(words) for at in range(mention.start, mention.end)}
        loose = [word for at, word in enumerate(words) if at not in named]
        return [word for word in dict.fromkeys(loose) if sum(word in item.enough for item in self._with.get(word, ())) > 1]

    def _places(self, words: Sequence[str]) -> dict[Item, list[int]]:
        places: dict[Item, list[int]] = {}
        for at, word in enumerate(words):
            for item in self._with.get(word, ()):
                places.setdefault(item, []).append(at)
        return places


def _runs(words: Sequence[str], places: Sequence[int]) -> list[list[int]]:
    """Cut `places` (ascending) at gaps of more than MAX_GAP words and before repeated words."""
    runs: list[list[int]] = []
    for at in places:
        if runs and at - runs[-1][-1] <= MAX_GAP + 1 and all(words[other] != words[at] for other in runs[-1]):
            runs[-1].append(at)
        else:
            runs.append([at])
    return runs


def _best(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """Of candidates that claim the same words, keep the one that claims more words or, with as many, is named in full; else none."""
    at: dict[int, list[int]] = {}
    for number, (places, _) in enumerate(candidates):
        for place in places:
            at.setdefault(place, []).append(number)
    kept = []
    for number, (places, item) in enumerate(candidates):
        rivals = {other for place in places for other in at[place] if other != number}
        if all(_claim(candidates[other]) < _claim((places, item)) for other in rivals):
            kept.append((places, item))
    return kept


def _claim(candidate: _Candidate) -> tuple[int, bool]:
    places, item = candidate
    return len(places), len(places) == len(item.words)
