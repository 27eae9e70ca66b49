"""Seeded draws for filler, and templates filled with words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final, TypeVar, final

__all__ = ["Draws", "filled", "listed", "read"]

Item = TypeVar("Item")

DATA: Final = Path(__file__).parents[1] / "data"

ARTICLE: Final = re.compile(r"[Aa](?<!\w.)(?= (?![Uu]ni|[Uu]s[aeu]|[Uu]t[eio]|[Uu]ku|[Ee]u|[Oo]ne\b|[Uu]re|[Uu]ra|[Ee]we)[aeiouAEIOU])")
"""Matches an article to change. The letter comes first, because searching for it is far faster than for a boundary between words."""


@final
class Draws:
    """Draws from named lists. No item is drawn again before the whole list has been drawn."""

    def __init__(self, seed: str) -> None:
        self.random = Random(seed)
        self._decks: dict[str, list[Any]] = {}

    def of(self, name: str, items: Callable[[], Sequence[Item]]) -> Item:
        """Draw from the list called `name`. `items` returns the list, and is called whenever all items have been drawn. It must always
        return the same."""
        deck = self._decks.get(name)
        if not deck:
            deck = self._decks[name] = self.shuffled(items())
        item: Item = deck.pop()
        return item

    def some(self, name: str, items: Callable[[], Sequence[Item]], number: int) -> list[Item]:
        """Draw `number` different items."""
        chosen: list[Item] = []
        while len(chosen) < number:
            item = self.of(name, items)
            if item not in chosen:
                chosen.append(item)
        return chosen

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """Return the result of `random.sample(items, len(items))` in half the time. Lists are long: the longest has 28,553 items."""
        bits = self.random.getrandbits
        pool, found = list(items), []
        for left in range(len(pool), 0, -1):
            size = left.bit_length()
            at = bits(size)
            while at >= left:
                at = bits(size)
            found.append(pool[at])
            pool[at] = pool[left - 1]
        return found


def filled(form: str, slots: Mapping[str, str]) -> str:
    """Fill slots such as {thing} in a form. Change "a" to "an" before a vowel, and capitalise the first letter."""
    text = ARTICLE.sub(_with_n, form.format_map(slots))
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
