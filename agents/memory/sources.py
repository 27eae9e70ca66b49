"""Inference of a memory's source turns from its wording, for memories that do not name them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from math import log
from typing import Final, NamedTuple, final

from longspan.agents.memory.memory import Extent
from longspan.agents.memory.turns import Turn
from longspan.simulator.base.words import plain

__all__ = ["InferredTurns", "Sources"]

SHARE: Final = 0.8
"""The share of a memory's or a turn's words, weighted by rarity, that must match to call the turn its source."""

FEWEST: Final = 3
"""The minimum number of different words that a memory shares with its source, unless the texts are equal."""

RAREST: Final = 8
"""How many of a memory's words are looked up, rarest first."""

RARE: Final = 0.05
"""A word is rare if at most this share of the turns contains it."""

MAX_ALIKE: Final = 20
"""The maximum number of source turns with equal text; the newest count."""

MAX_WORDS: Final = 2000
"""The maximum number of words considered per text."""


@final
class InferredTurns(NamedTuple):
    """The source turns inferred from a memory's wording, possibly none. `extent`: see `MemoryItem.inferred`."""

    turns: tuple[str, ...]
    extent: Extent


@final
class Sources:
    """An index of the words of turns, for tracing memories to their sources."""

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
        """Return the time of the latest of the turns with these ids; None if no id is known."""
        return max((self._times[turn] for turn in turns if turn in self._times), default=None)

    def of(self, text: str) -> InferredTurns:
        """Return a memory's source turns: all turns with equal text, or else the one turn with matching words.

        Nearly all words of the memory must occur in the turn, or nearly all of the turn's in the memory. Only common or unknown words may
        be missing: "my colour is tan" does not come from "my colour is blue". Of several such turns, the most similar counts, then the
        newest.
        """
        if alike := self._alike.get(plain(text)):
            return InferredTurns(tuple(alike[-MAX_ALIKE:]), "whole")
        words = _words(text)
        rarest = sorted((word for word in words if word in self._holders), key=lambda word: (len(self._holders[word]), word))[:RAREST]
        candidates = {number for word in rarest for number in self._holders[word]}
        fitting = {number: extent for number in candidates if (extent := self._extent(words, self._words[number]))}
        if not fitting:
            return InferredTurns((), "")
        likest = max(fitting, key=lambda number: (len(words & self._words[number]) / len(words | self._words[number]), number))
        return InferredTurns((self.turns[likest].turn_id,), fitting[likest])

    def _extent(self, memory: frozenset[str], turn: frozenset[str]) -> Extent:
        """Return how much of a memory a turn explains."""
        shared = memory & turn
        weight = self._weight(shared)
        # Words of this weight co-occur by chance in less than one of all turns: "Yes, it is" identifies no turn.
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
        """Return how many turns contain a word."""
        return len(self._holders.get(word, ()))

    def _weight(self, words: Iterable[str]) -> float:
        """Return how strongly words identify a source: a word in every turn counts next to nothing, a rare word most."""
        return sum(log(1 + len(self.turns) / max(1, self._count(word))) for word in sorted(words))


def _words(text: str) -> frozenset[str]:
    return frozenset(plain(text).split()[:MAX_WORDS])
