"""A test of whether scores differ between groups of questions by more than chance."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

__all__ = ["measure_heterogeneity"]

PERMUTATIONS: Final = 1_999
"""The number of random permutations, besides the observed order. The least p-value is 0.0005."""


def measure_heterogeneity(
    scores: Sequence[float], groups: Sequence[Hashable], strata: Sequence[Hashable], *, seed: int = 0
) -> float | None:
    """Return the p-value of a permutation test that groups have the same expected score within each stratum; None with one group.

    The statistic is the variation of the groups' means about the mean of all, weighted by their sizes. `scores`, `groups` and `strata` have
    an entry for each question.
    """
    import numpy as np

    names = {name: number for number, name in enumerate(dict.fromkeys(groups))}
    if len(names) < 2:
        return None
    score = np.array(scores, dtype=float)
    group, stratum = np.array([names[each] for each in groups]), np.array([hash(each) for each in strata])
    random = np.random.default_rng(seed)
    member = np.eye(len(names))[group]
    shuffled = np.tile(score, (PERMUTATIONS + 1, 1))
    for each in np.unique(stratum):
        own = np.flatnonzero(stratum == each)
        shuffled[1:, own] = random.permuted(shuffled[1:, own], axis=1)
    variation = ((shuffled @ member) ** 2 / member.sum(axis=0)).sum(axis=1)
    return float(np.mean(variation >= variation[0] - 1e-9))  # tolerates rounding
