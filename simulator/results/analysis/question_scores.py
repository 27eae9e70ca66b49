"""The scores of the questions of a test. A test of plain facts at many distances has several; every other test counts as one question."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean
from typing import Final

from longspan.simulator.contract.rungs import Rung, find_rungs
from longspan.simulator.results.result import TestResult

__all__ = ["count_questions", "score_bounds"]

ROUNDING: Final = 1e-4
"""The largest difference between a test's score and the mean of its questions that rounding can cause."""


def count_questions(tests: Iterable[TestResult]) -> int:
    """Return the number of questions in several results of the same test: 1, unless one of them lists more."""
    return max(1, *(len(_later_rungs(test)) for test in tests))


def score_bounds(test: TestResult, number: int) -> list[tuple[float, float]]:
    """Return the lowest and the highest possible score of each of a test's `number` questions. Their means are the test's own bounds."""
    scores = [rung.score or 0.0 for rung in _later_rungs(test)]
    if test.score is None or len(scores) != number or abs(fmean(scores) - test.score) > ROUNDING:
        # Without answers, or if a person corrected the test's score, questions have no separate scores.
        return [(test.lowest, test.highest)] * number
    return [(score, score) for score in scores]


def _later_rungs(test: TestResult) -> list[Rung]:
    """Return the rungs that make up the score. A question in the message that states its fact requires no memory, so it is left out."""
    return [rung for rung in find_rungs(test.items) if not rung.at_once]
