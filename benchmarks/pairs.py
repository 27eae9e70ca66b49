"""How many conversations show that an agent's score is memory: each with its twins, or half of them played without needles.

Simulated: tests differ in how hard they are, and conversations in how well an agent does in them. A test is answered right with its needle,
and by guessing or contamination without it, the easier the sooner. A conversation of `TESTS` tests is one unit. Its tests' scores with and
without needles are paired (twins), or they are of different conversations with other tests (unpaired). The number is the smallest
where a t-test of the conversations' means finds the effect at 5% in four of five cases.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np

from longspan.simulator.results.analysis.statistics import student_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["conversations_needed", "measure"]

SPAN = 0
TESTS = 10
"""Tests with a twin in a conversation."""
HARD, APART = 1.5, 0.7
"""Standard deviations of how hard tests are and of how well conversations go, in logits."""
CASES = 2_000
MOST = 1_000
POWER = 0.8


def measure(span: int) -> dict[str, float]:
    """Return the conversations needed, by the scores with and without needles, with twins and without."""
    found = {}
    for with_, without in ((0.9, 0.1), (0.7, 0.3), (0.7, 0.5), (0.5, 0.4)):
        for paired in (True, False):
            name = f"{with_} with, {without} without: {'twins' if paired else 'unpaired'}"
            found[name] = float(conversations_needed(with_, without, paired=paired))
    return found


def conversations_needed(with_: float, without: float, *, paired: bool, cases: int = CASES, most: int = MOST) -> int:
    """Return the least number of conversations, below `most`, that shows an effect. One with its twins counts once."""
    return bisect_left(range(most), POWER, lo=2, key=lambda number: _power(with_, without, number, paired=paired, cases=cases))


def _power(with_: float, without: float, number: int, *, paired: bool, cases: int) -> float:
    """Return how often the effect is found with a number of conversations, for unpaired ones in both halves together."""
    if paired:
        scores = [_scores(share, number, cases, seed=0) for share in (with_, without)]
        differences = scores[0] - scores[1]
        error = differences.std(axis=1, ddof=1) / np.sqrt(number)
        return _share_found(differences.mean(axis=1), error, number - 1)
    half, rest = number // 2, number - number // 2
    if half < 2:
        return 0.0
    one, other = _scores(with_, half, cases, seed=0), _scores(without, rest, cases, seed=1)
    pooled = ((half - 1) * one.var(axis=1, ddof=1) + (rest - 1) * other.var(axis=1, ddof=1)) / (number - 2)
    return _share_found(one.mean(axis=1) - other.mean(axis=1), np.sqrt(pooled * (1 / half + 1 / rest)), number - 2)


def _scores(share: float, conversations: int, cases: int, *, seed: int) -> NDArray[np.float64]:
    """Return mean scores of conversations, shape (cases, conversations). The same seed gives the same tests and conversations."""
    shared = np.random.default_rng(seed)
    hard = shared.normal(0, HARD, (cases, conversations, TESTS)) + shared.normal(0, APART, (cases, conversations, 1))
    own = np.random.default_rng([seed, round(1_000 * share)])
    logit = _logit(share)
    right = own.random(hard.shape) < 1 / (1 + np.exp(-(logit + hard)))
    found: NDArray[np.float64] = right.mean(axis=2)
    return found


def _logit(share: float) -> float:
    """Return the logit that gives a mean share over tests and conversations, by the usual approximation of a logistic-normal mean."""
    return float(np.log(share / (1 - share)) * np.sqrt(1 + (HARD**2 + APART**2) * (16 * np.sqrt(3) / (15 * np.pi)) ** 2))


def _share_found(differences: NDArray[np.float64], errors: NDArray[np.float64], freedom: int) -> float:
    return float(np.mean(differences > student_quantile(freedom) * np.maximum(errors, 1e-12)))
