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

__all__ = ["Draws", "filled", "listed", "read"]

Item = TypeVar("Item")

DATA: Final = Path(__file__).parents[1] / "data"

ARTICLE: Final = re.compile(r"[Aa](?<!\w.)(?= (?![Uu]ni|[Uu]s[aeu]|[Uu]t[eio]|[Uu]ku|[Ee]u|[Oo]ne\b|[Uu]re|[Uu]ra|[Ee]we)[aeiouAEIOU])")
"""Matches an article to change. The letter comes first, because searching for it is far faster than for a boundary between words."""


LONG: Final = 256
"""Lists with so many items have their order remembered."""


@final
class Draws:
    """Draws from named lists. No item is drawn again before the whole list has been drawn."""

    def __init__(self, seed: str) -> None:
        self.random = Random(seed)
        self._decks: dict[str, Iterator[Any]] = {}

    def of(self, name: str, items: Callable[[], Sequence[Item]]) -> Item:
        """Draw from the list called `name`. `items` returns the list, and is called whenever all items have been drawn. It must always
        return the same."""
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

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """Return the result of `random.sample(items, len(items))` in less time."""
        return [items[place] for place in self._order(len(items))]

    def _order(self, number: int) -> Sequence[int]:
        if number < LONG:
            return _drawn_order(self.random, number)
        version, words, rest = self.random.getstate()
        order, after = _known_order(number, array("I", words).tobytes())
        self.random.setstate((version, tuple(array("I", after)), rest))
        return order


@lru_cache(512)  # the orders of fifteen short conversations, which a replay, a twin and the next agent draw again: about 10 MB
def _known_order(number: int, state: bytes) -> tuple[Sequence[int], bytes]:
    """Return an order of `number` items, drawn by a random generator whose state has these words, and the words of its state afterwards."""
    random = Random()
    version, _, rest = random.getstate()
    random.setstate((version, tuple(array("I", state)), rest))
    return array("I", _drawn_order(random, number)), array("I", random.getstate()[1]).tobytes()


def _drawn_order(random: Random, number: int) -> list[int]:
    """Return the result of `random.sample(range(number), number)` in two fifths of the time: the longest list has 28,553 items."""
    bits = random.getrandbits
    pool = list(range(number))
    last = number - 1
    while last >= 0:
        size = (last + 1).bit_length()
        least = 1 << size - 1
        for place in range(last, least - 2, -1):  # as long as the number of items left has as many bits
            at = bits(size)
            while at > place:
                at = bits(size)
            drawn = pool[at]
            pool[at] = pool[place]
            pool[place] = drawn
        last = least - 2
    return pool[::-1]


def filled(form: str, slots: Mapping[str, str]) -> str:
    """Fill slots such as {thing} in a form. Change "a" to "an" before a vowel, and capitalise the first letter."""
    text = form.format_map(slots)
    if "a " in text or "A " in text:  # far faster than a search for nothing
        text = ARTICLE.sub(_with_n, text)
    return text[:1].upper() + text[1:]


def _with_n(article: re.Match[str]) -> str:
    return article[0] + "n"


def listed(words: Sequence[str], last: str = "and") -> str:
    """Return "a, b and c"."""
    return f" {last} ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


@cache
def read(name: str) -> Any:
    """Return the list in `simulator/data/<name>.json`. Changing it changes what seeds mean."""
    return json.loads((DATA / f"{name}.json").read_text("utf-8"))
