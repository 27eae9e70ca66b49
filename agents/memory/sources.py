"""Which turn a memory comes from, where the memory itself does not say: by its words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Final, final

from longspan.agents.memory.turns import Turn
from longspan.simulator.grading.matching import plain

__all__ = ["Sources"]

SHARE: Final = 0.8
"""The share of words that shows that a memory comes from a turn."""

FEWEST: Final = 3
"""The fewest different words that identify a turn or a memory."""

RAREST: Final = 8
"""How many of a memory's words are looked up: the rarest."""

MAX_WORDS: Final = 2000
"""The maximum number of words that are considered."""


@final
class Sources:
    """The words of turns, to trace memories back to them."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self._words: list[frozenset[str]] = []
        self._holders: defaultdict[str, list[int]] = defaultdict(list)
        self._times: dict[str, datetime] = {}

    def keep(self, turn: Turn) -> None:
        """Add a turn."""
        words = _words(turn.document)
        for word in words:
            self._holders[word].append(len(self.turns))
        self.turns.append(turn)
        self._times[turn.turn_id] = turn.sent_at
        self._words.append(words)

    def last(self, turns: Iterable[str]) -> datetime | None:
        """Return the time of the last of some turns, given by id; None if none is known."""
        return max((self._times[turn] for turn in turns if turn in self._times), default=None)

    def of(self, text: str) -> tuple[str, ...]:
        """Return the id of the turn whose words a memory shares: nearly all of its own, or of the turn's. Of several, the likest, and then
        the newest."""
        words = _words(text)
        rarest = sorted((word for word in words if word in self._holders), key=lambda word: (len(self._holders[word]), word))[:RAREST]
        candidates = Counter(number for word in rarest for number in self._holders[word])
        fitting = [number for number in candidates if _fits(words, self._words[number])]
        if not fitting:
            return ()
        likest = max(fitting, key=lambda number: (len(words & self._words[number]) / len(words | self._words[number]), number))
        return (self.turns[likest].turn_id,)


def _fits(one: frozenset[str], other: frozenset[str]) -> bool:
    least = min(len(one), len(other))
    return least >= FEWEST and len(one & other) >= SHARE * least


def _words(text: str) -> frozenset[str]:
    return frozenset(plain(text).split()[:MAX_WORDS])
