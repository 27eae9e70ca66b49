"""BM25 over turns (Robertson and Zaragoza, 2009).

Each turn is a document. Words are lower-cased, without stemming or stop words. k1 is 1.5 and b is 0.75.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from heapq import nsmallest
from math import inf, log
from typing import Final, final

from pydantic import Field

from longspan.agents.base import AgentOptions
from longspan.agents.memory.baseline_memories import KeptTurns, item_of
from longspan.agents.memory.memory import MemoryItem
from longspan.agents.memory.turns import Turn

__all__ = ["Bm25"]

K1: Final = 1.5
"""The saturation of term frequency: repeated words count less with a lower value."""

B: Final = 0.75
"""The strength of the normalisation by document length."""

WORD: Final = re.compile(r"\w+")


@final
class Bm25(KeptTurns):
    """Turns ranked by the words that they share with the query. Of equal scores, the newest comes first."""

    class Options(AgentOptions):
        """`forget`: on a request to forget, search for its subject and forget the turns with at least this share of the best score. None:
        forget nothing."""

        forget: float | None = Field(default=None, gt=0, le=1, allow_inf_nan=False)

    def __init__(self, target: str = "", options: AgentOptions | None = None) -> None:
        super().__init__(target, options)
        self._least = options.forget if isinstance(options, self.Options) else None
        self._clear()

    def _clear(self) -> None:
        self._turns: list[Turn] = []
        self._lengths: list[int] = []
        self._words = 0
        self._holders: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)

    @property
    def turns(self) -> Iterable[Turn]:
        return self._turns

    def keep(self, turn: Turn) -> None:
        words = WORD.findall(turn.document.lower())
        for word, times in Counter(words).items():
            self._holders[word].append((len(self._turns), times))
        self._turns.append(turn)
        self._lengths.append(len(words))
        self._words += len(words)

    async def search(self, query: str, k: int, at: datetime) -> Sequence[MemoryItem]:
        scores = self._scores(query)
        best = nsmallest(k, scores, key=lambda number: (-scores[number], -number))
        return [item_of(self._turns[number], round(scores[number], 4)) for number in best]

    def _scores(self, query: str) -> Mapping[int, float]:
        """Return the BM25 score of each turn that shares a word with the query, keyed by turn number."""
        scores: defaultdict[int, float] = defaultdict(float)
        shrink = B * len(self._turns) / max(1, self._words)
        for word in WORD.findall(query.lower()):
            holders = self._holders.get(word, ())
            rarity = log(1 + (len(self._turns) - len(holders) + 0.5) / (len(holders) + 0.5))
            for number, times in holders:
                scores[number] += rarity * times * (K1 + 1) / (times + K1 * (1 - B + shrink * self._lengths[number]))
        return scores

    @property
    def forgets(self) -> bool:
        """Whether the `forget` option is set."""
        return self._least is not None

    async def forget(self, text: str, at: datetime) -> Sequence[MemoryItem]:
        scores = self._scores(text)
        least = (self._least or inf) * max(scores.values(), default=0.0)
        turns = self._turns
        self._clear()
        for number, turn in enumerate(turns):
            if scores.get(number, -1.0) < least:
                self.keep(turn)
        return [item_of(turn) for number, turn in enumerate(turns) if scores.get(number, -1.0) >= least]

    async def reset(self) -> None:
        self._clear()
