"""Infers from its wording which turn a memory comes from, if the memory itself does not name any."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from math import log
from typing import Final, NamedTuple, final

from longspan.agents.memory.memory import Extent
from longspan.agents.memory.turns import Turn
from longspan.simulator.grading.matching import plain

__all__ = ["Inferred", "Sources"]

SHARE: Final = 0.8
"""The share of a memory's words, or of a turn's, that shows that the memory comes from the turn. Rare words weigh more."""

FEWEST: Final = 3
"""The fewest different words that a memory shares with a turn it comes from, unless its text is the turn's."""

RAREST: Final = 8
"""How many of a memory's words are looked up: the rarest."""

RARE: Final = 0.05
"""A word of at most this share of the turns is rare."""

MAX_ALIKE: Final = 20
"""The maximum number of turns with the same text that a memory is said to come from: the newest."""

MAX_WORDS: Final = 2000
"""The maximum number of words that are considered."""


@final
class Inferred(NamedTuple):
    """The turns that a memory comes from, by its wording; none if its wording shows none. `extent`: see `MemoryItem.inferred`."""

    turns: tuple[str, ...]
    extent: Extent


@final
class Sources:
    """The words of turns, to trace memories back to them."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self._words: list[frozenset[str]] = []
        self._holders: defaultdict[str, list[int]] = defaultdict(list)
        self._alike: defaultdict[str, list[str]] = defaultdict(list)
        self._times: dict[str, datetime] = {}

    def keep(self, turn: Turn) -> None:
        """Add a turn."""
        words = _words(turn.document)
        for word in words:
            self._holders[word].append(len(self.turns))
        for text in {plain(turn.document), plain(turn.text)} - {""}:
            self._alike[text].append(turn.turn_id)
        self.turns.append(turn)
        self._times[turn.turn_id] = turn.sent_at
        self._words.append(words)

    def last(self, turns: Iterable[str]) -> datetime | None:
        """Return the time of the last of some turns, given by id; None if none is known."""
        return max((self._times[turn] for turn in turns if turn in self._times), default=None)

    def of(self, text: str) -> Inferred:
        """Return the turns that a memory comes from: those with the same text, or else the one turn whose words it shares.

        Nearly all words of the memory must be the turn's, or nearly all of the turn's the memory's. Only common words may be missing, or
        words that nobody said: "my colour is tan" does not come from "my colour is blue". Of several such turns, the most similar counts,
        and then the newest.
        """
        if alike := self._alike.get(plain(text)):
            return Inferred(tuple(alike[-MAX_ALIKE:]), "whole")
        words = _words(text)
        rarest = sorted((word for word in words if word in self._holders), key=lambda word: (len(self._holders[word]), word))[:RAREST]
        candidates = {number for word in rarest for number in self._holders[word]}
        fitting = {number: extent for number in candidates if (extent := self._extent(words, self._words[number]))}
        if not fitting:
            return Inferred((), "")
        likest = max(fitting, key=lambda number: (len(words & self._words[number]) / len(words | self._words[number]), number))
        return Inferred((self.turns[likest].turn_id,), fitting[likest])

    def _extent(self, memory: frozenset[str], turn: frozenset[str]) -> Extent:
        """Return how much of a memory a turn explains."""
        shared = memory & turn
        weight = self._weight(shared)
        # Words of this weight occur together by chance in fewer than one of all turns: "Yes, it is" identifies no turn.
        if len(shared) < FEWEST or weight < 2 * log(1 + len(self.turns)):
            return ""
        rare = max(2, RARE * len(self.turns))
        sides: tuple[tuple[Extent, frozenset[str]], ...] = (("whole", memory), ("part", turn))
        for extent, words in sides:
            missing = words - shared
            if weight >= SHARE * (weight + self._weight(missing)) and not any(0 < self._count(word) <= rare for word in missing):
                return extent
        return ""

    def _count(self, word: str) -> int:
        """Return how many turns have a word."""
        return len(self._holders.get(word, ()))

    def _weight(self, words: Iterable[str]) -> float:
        """Return how much words say about where a text comes from: a word of every turn next to nothing, a rare one most."""
        return sum(log(1 + len(self.turns) / max(1, self._count(word))) for word in sorted(words))


def _words(text: str) -> frozenset[str]:
    return frozenset(plain(text).split()[:MAX_WORDS])
