"""A restaurant's menu: find the items that a reply names, in full or in part."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, final

from longspan.scenarios.ltm.restaurant.guest_phrases import BEFORE_NOUNS, MANNERS, SIDES
from longspan.simulator.base.words import plain
from longspan.simulator.reading.replies.values import correct_typos

__all__ = ["Item", "Mention", "Menu", "drop_plural", "plural_free_words"]

SHORT: Final = 5
LONG: Final = 6
FEW: Final = 3
"""Minimum length of a word that is recognised despite one wrong letter: SHORT in a sentence of at most FEW words, otherwise LONG."""
MAX_GAP: Final = 3
"""Maximum number of other words between two words of an item's name."""

_LINKS = re.compile(r"\s+(?:(?:served|topped|filled|drizzled)\s+)?(?:with|in|on|over)\s+|\s*,\s*")
_FILLERS = frozenset("a and of the with in on over to s la al alla served".split())


def drop_plural(word: str) -> str:
    """Return `word` without its plural ending, so that "potatoes" equals "potato"."""
    for ending, instead in (("ss", "ss"), ("ies", "y"), ("oes", "o"), ("s", "")):
        if word.endswith(ending) and len(word) > 3:
            return word.removesuffix(ending) + instead
    return word


def plural_free_words(text: str) -> list[str]:
    """Return the plain words of `text`, stemmed."""
    return [drop_plural(word) for word in plain(text).split()]


@final
@dataclass(frozen=True, slots=True)
class Item:
    """An item of the menu. `full` is its name in stems. `words` may name it together; each of `enough` suffices alone.

    `noun`: the kind of item, if another word specifies it ("soup" in "leek soup").
    """

    name: str
    drink: bool
    full: tuple[str, ...]
    words: frozenset[str]
    enough: frozenset[str]
    noun: str | None

    @classmethod
    @lru_cache(maxsize=1000)
    def parse_item(cls, name: str, drink: bool) -> Item:
        """Return the item with that name. The part after "with", "in", "on" or "over" does not name it alone."""
        full = tuple(plural_free_words(name))
        head = [word for word in plural_free_words(_LINKS.split(name, maxsplit=1)[0]) if word not in _FILLERS]
        core = [word for word in head if word not in MANNERS]
        enough = [word for word in core if word not in SIDES] or core or head
        return cls(name, drink, full, frozenset(full) - _FILLERS, frozenset(enough), core[-1] if len(core) > 1 else None)

    def is_named_by(self, words: Sequence[str], run: Sequence[int]) -> bool:
        """Return whether the words at the positions `run`, all of them the item's, suffice to name it."""
        if not any(words[at] in self.enough for at in run) or (self.noun and len(run) == 1 and words[run[0]] in SIDES):
            return False
        naming = [at for at in run if words[at] in self.enough]
        first = naming[0]
        return any(words[at] != self.noun for at in naming) or first == 0 or words[first - 1] in BEFORE_NOUNS or first - 1 in run


@final
class Mention(NamedTuple):
    """An item named in a sentence, from word `start` to word `end` (exclusive).

    `vague`: the words also fit other restaurants' items, so they name a kind of item, such as "the soup".
    """

    item: Item
    start: int
    end: int
    vague: bool = False


_Candidate = tuple[frozenset[int], Item, bool]
"""Positions of words in a sentence, the item that they would name, and whether it is on the menu."""


@final
class Menu:
    """The drinks and dishes that can be ordered, and items of other restaurants (`elsewhere`)."""

    def __init__(self, drinks: Iterable[str], dishes: Iterable[str], elsewhere: Iterable[Item] = ()) -> None:
        self.items = [Item.parse_item(name, True) for name in drinks] + [Item.parse_item(name, False) for name in dishes]
        self.served = frozenset(self.items)
        self._names = tuple(item.name for item in self.items)
        self._with: dict[str, list[Item]] = {}
        self._full: dict[str, list[Item]] = {}
        for item in (*self.items, *(item for item in elsewhere if item not in self.served)):
            self._full.setdefault(item.full[0] if item.full else "", []).append(item)
            for word in item.words:
                self._with.setdefault(word, []).append(item)

    def correct_typos(self, text: str) -> str:
        """Return plain text with single wrong letters in words of the menu's items corrected."""
        return correct_typos(text, self._names, SHORT if len(text.split()) <= FEW else LONG)

    def mentions(self, words: Sequence[str]) -> list[Mention]:
        """Return the items that `words` (stems) name, in order. Words that fit two of the menu's items equally well name neither."""
        found = list(self._in_full(words))
        taken = {at for mention in found for at in range(mention.start, mention.end)}
        places: dict[Item, list[int]] = {}
        for at, word in enumerate(words):
            for item in self._with.get(word, ()) if at not in taken else ():
                places.setdefault(item, []).append(at)
        runs = [(run, item) for item, held in places.items() for run in _runs(words, item, held, taken) if item.is_named_by(words, run)]
        candidates = [(frozenset(run), item, item in self.served) for run, item in runs]
        return sorted((*found, *_best(candidates)), key=lambda mention: mention[1:3])

    def _in_full(self, words: Sequence[str]) -> Iterator[Mention]:
        at = 0
        while at < len(words):
            fits = [item for item in self._full.get(words[at], ()) if tuple(words[at : at + len(item.full)]) == item.full]
            longest = max(fits, key=lambda item: len(item.full), default=None)
            if longest and (len(longest.full) > 1 or len(self._with[words[at]]) == 1):
                yield Mention(longest, at, at + len(longest.full))
            at += len(longest.full) if longest else 1


def _runs(words: Sequence[str], item: Item, places: Sequence[int], taken: set[int]) -> Iterator[list[int]]:
    """Split `places` (ascending) at gaps over MAX_GAP words, at other names, at commas if the name has none, and at repeated words."""
    run: list[int] = []
    for at in places:
        between = range(run[-1] + 1, at) if run else range(0)
        cut = len(between) > MAX_GAP or any(place in taken or (words[place] == "," and "," not in item.name) for place in between)
        if run and (cut or any(words[other] == words[at] for other in run)):
            yield run
            run = []
        run.append(at)
    yield run


def _best(candidates: Sequence[_Candidate]) -> Iterator[Mention]:
    """Yield the candidate with the best claim to the same words, or none if two of the menu's tie.

    If several tie that are not on the menu, the first represents all.
    """
    at: dict[int, list[int]] = {}
    for number, candidate in enumerate(candidates):
        for place in candidate[0]:
            at.setdefault(place, []).append(number)
    claims = [(len(places), len(places) == len(item.words), served) for places, item, served in candidates]
    for number, (places, item, served) in enumerate(candidates):
        rivals = {other for place in places for other in at[place] if other != number}
        mine = claims[number]
        if all(claims[other] < mine or (claims[other] == mine and not served and other > number) for other in rivals):
            vague = served and any(not candidates[other][2] and candidates[other][0] >= places for other in rivals)
            yield Mention(item, min(places), max(places) + 1, vague)
