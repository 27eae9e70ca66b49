"""The lines that replace the needles of a twin's test."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Final, final

from longspan.simulator.contract.scenario import Test
from longspan.simulator.filler.filler import Filler
from longspan.simulator.journal.forks import Fork

__all__ = ["Replacements"]

MAX_TOKENS: Final = 40
"""The most tokens of a line that replaces a needle."""
REMARKS: Final = 40
"""The number of remarks to try, to find one that shares no word with the needle."""


@final
class Replacements:
    """Replaces the needles of a twin's test with small talk that depends on the test's seed alone. Other conversations keep theirs."""

    def __init__(self, fork: Fork | None, filler: Filler, count: Callable[[str], int]) -> None:
        self._test = fork.experiment.test if fork is not None and fork.experiment.kind == "twin" else None
        self._filler = filler
        self._count = count
        self._turns: set[int] = set()

    def of(self, test: Test, turn: int, needle: str) -> str | None:
        """Return the remark that replaces a test's needle in turn number `turn`, or None to say the needle."""
        if test.id != self._test:
            return None
        self._turns.add(turn)
        random, words = Random(f"{test.seed}/twin/{len(self._turns)}"), _words(needle)
        size, shuffled = min(self._count(needle), MAX_TOKENS), random.sample(range(REMARKS), REMARKS)
        remarks = (self._filler.remark(size, number) for number in shuffled)
        return next((text for text in remarks if words.isdisjoint(_words(text))), "Well.")

    def keep_needles(self, needles: Sequence[int]) -> list[int]:
        """Return the turns of needles that were not replaced."""
        return [turn for turn in needles if turn not in self._turns]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{4,}", text.lower()))
