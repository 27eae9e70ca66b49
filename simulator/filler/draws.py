"""Seeded draws for filler, and templates filled with words."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from random import Random
from typing import Any, Final, TypeVar, final

__all__ = ["Draws", "fill_slots", "join_words", "read_word_list"]

Item = TypeVar("Item")

DATA: Final = Path(__file__).parents[1] / "data"

ARTICLE: Final = re.compile(r"[Aa](?<!\w.)(?= (?![Uu]ni|[Uu]s[aeu]|[Uu]t[eio]|[Uu]ku|[Ee]u|[Oo]ne\b|[Uu]re|[Uu]ra|[Ee]we)[aeiouAEIOU])")
"""Matches an "a" that must become "an". The letter comes first, because searching for it is much faster than for a word boundary."""


LONG: Final = 256
"""Lists of this size or more have their order cached."""


@final
class Draws:
    """Draws from named lists. No item is drawn again before the whole list has been drawn."""

    def __init__(self, seed: str) -> None:
        self.random = Random(seed)
        self._decks: dict[str, Iterator[Any]] = {}

    def of(self, name: str, items: Callable[[], Sequence[Item]]) -> Item:
        """Draw from the list `name`. `items` returns the list. It is called whenever all items have been drawn, and must always return the
        same list."""
        for drawn in self._decks.get(name, ()):
            item: Item = drawn
            return item
        found = items()
        deck: Iterator[Item] = map(found.__getitem__, reversed(self._order(len(found))))
        self._decks[name] = deck
        return next(deck)

    def some(self, name: str, items: Callable[[], Sequence[Item]], number: int) -> list[Item]:
        """Draw `number` different items."""
        chosen: list[Item] = []
        while len(chosen) < number:
            item = self.of(name, items)
            if item not in chosen:
                chosen.append(item)
        return chosen

    def shuffle(self, items: Sequence[Item]) -> list[Item]:
        """Return the result of `random.sample(items, len(items))` in less time."""
        return [items[place] for place in self._order(len(items))]

    def _order(self, number: int) -> Sequence[int]:
        if number < LONG:
            return _draw_order(self.random, number)
        version, words, rest = self.random.getstate()
        order, after = _cached_order(number, array("I", words).tobytes())
        self.random.setstate((version, tuple(array("I", after)), rest))
        return order


@lru_cache(512)  # about 10 MB: the orders of fifteen short conversations, which a replay, a twin and the next agent draw again
def _cached_order(number: int, state: bytes) -> tuple[Sequence[int], bytes]:
    """Return the order of `number` items drawn from a random state, and the state afterwards. States are the words of the generator."""
    random = Random()
    version, _, rest = random.getstate()
    random.setstate((version, tuple(array("I", state)), rest))
    return array("I", _draw_order(random, number)), array("I", random.getstate()[1]).tobytes()


def _draw_order(random: Random, number: int) -> list[int]:
    """Return the result of `random.sample(range(number), number)` in two fifths of the time. The longest list has 28,553 items."""
    bits = random.getrandbits
    pool = list(range(number))
    last = number - 1
    while last >= 0:
        size = (last + 1).bit_length()
        least = 1 << size - 1
        for place in range(last, least - 2, -1):  # while the number of items left has the same number of bits
            at = bits(size)
            while at > place:
                at = bits(size)
            drawn = pool[at]
            pool[at] = pool[place]
            pool[place] = drawn
        last = least - 2
    return pool[::-1]


def fill_slots(form: str, slots: Mapping[str, str]) -> str:
    """Fill slots such as {thing} in a form. Change "a" to "an" before a vowel, and capitalise the first letter."""
    text = form.format_map(slots)
    if "a " in text or "A " in text:  # much faster than a pattern that finds nothing
        text = ARTICLE.sub(_with_n, text)
    return text[:1].upper() + text[1:]


def _with_n(article: re.Match[str]) -> str:
    return article[0] + "n"


def join_words(words: Sequence[str], last: str = "and") -> str:
    """Return "a, b and c"."""
    return f" {last} ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


@cache
def read_word_list(name: str) -> Any:
    """Return the content of `simulator/data/<name>.json`. Changing the file changes the conversation of every seed."""
    return json.loads((DATA / f"{name}.json").read_text("utf-8"))
