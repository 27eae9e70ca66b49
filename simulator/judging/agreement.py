"""How far those who score agree, and whether some scores are lower than others. Pure functions over pairs of scores."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, isfinite, sqrt
from statistics import fmean, pstdev, stdev, variance
from typing import Final, NamedTuple, final

__all__ = ["Mean", "icc_one_way", "icc_two_way", "kappa", "lower", "mean_interval", "pearson", "spearman"]

LEVEL: Final = 0.95


@final
class Mean(NamedTuple):
    """A mean with the interval that holds it at 95 % (Student's t); the interval is None for a single value."""

    value: float
    low: float | None
    high: float | None


def mean_interval(values: Sequence[float]) -> Mean | None:
    """The mean of some values with its interval; None of none."""
    if not values:
        return None
    mean = fmean(values)
    if len(values) < 2:
        return Mean(mean, None, None)
    from scipy.special import stdtrit

    half = float(stdtrit(len(values) - 1, (1 + LEVEL) / 2)) * stdev(values) / sqrt(len(values))
    return Mean(mean, mean - half, mean + half)


def pearson(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Pearson's correlation of pairs; None for less than two, and where one side is always the same."""
    if len(left) < 2 or len(left) * pstdev(left) * pstdev(right) < 1e-12:
        return None
    from scipy.stats import pearsonr

    return float(pearsonr(left, right).statistic)


def spearman(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Spearman's correlation of pairs: Pearson's of their ranks, equal values sharing theirs."""
    from scipy.stats import rankdata

    return pearson(rankdata(left).tolist(), rankdata(right).tolist())


def kappa(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Cohen's kappa of pairs with quadratic weights: 1 where all agree, 0 where they agree as much as by chance.

    A disagreement weighs the square of its distance. None for no pairs, and where both sides always say the same one thing.
    """
    if not left:
        return None
    observed = fmean((a - b) ** 2 for a, b in zip(left, right, strict=True))
    # Over all pairs of a left and a right value: E(a - b)^2 = E a^2 - 2 E a E b + E b^2.
    a, b = fmean(left), fmean(right)
    by_chance = fmean((each - a) ** 2 for each in left) + fmean((each - b) ** 2 for each in right) + (a - b) ** 2
    return None if by_chance < 1e-12 else 1 - observed / by_chance


def icc_two_way(scores: Sequence[Sequence[float]]) -> float | None:
    """ICC(2,k): how reliable the mean of k raters is, who are drawn at random and all rate every item (Shrout and Fleiss, 1979).

    `scores`: a row for each item, in it a score of each rater, in the same order. None for less than two items or raters, and
    where nothing varies. Raises ValueError for rows that differ in length.
    """
    if (parts := _two_way(scores)) is None:
        return None
    items, raters, between, by_rater, error = parts
    below = between + (by_rater - error) / items
    return None if abs(below) < 1e-12 or raters < 2 else (between - error) / below


def icc_one_way(scores: Sequence[Sequence[float]]) -> float | None:
    """ICC(1,k): how reliable the mean of k raters is, where each item has raters of its own (Shrout and Fleiss, 1979).

    `scores`: a row for each item, in it the scores of its raters. None for less than two items or raters, and where nothing
    varies. Raises ValueError for rows that differ in length.
    """
    if len({len(row) for row in scores}) > 1:
        raise ValueError("every item needs as many scores as the others")
    if len(scores) < 2 or len(scores[0]) < 2:
        return None
    raters = len(scores[0])
    between = raters * variance([fmean(row) for row in scores])
    within = fmean(variance(row) for row in scores)
    return None if between < 1e-12 else (between - within) / between


def lower(some: Sequence[float], others: Sequence[float]) -> float | None:
    """The p-value of a one-tailed Welch test: how likely `some` would be so much lower than `others` by chance, if they were not.

    Unequal variances. None where one side has less than two values, or neither varies.
    """
    if len(some) < 2 or len(others) < 2:
        return None
    a, b = stdev(some), stdev(others)
    if a**2 / len(some) + b**2 / len(others) < 1e-18:
        return None
    from scipy.stats import ttest_ind_from_stats  # ttest_ind warns where one side is constant

    found = ttest_ind_from_stats(fmean(some), a, len(some), fmean(others), b, len(others), equal_var=False, alternative="less")
    return float(found.pvalue) if isfinite(found.pvalue) else None


def _two_way(scores: Sequence[Sequence[float]]) -> tuple[int, int, float, float, float] | None:
    """Items, raters, and the mean squares between items, between raters, and of what is left."""
    if len({len(row) for row in scores}) > 1:
        raise ValueError("every item needs as many scores as the others")
    if len(scores) < 2 or len(scores[0]) < 2:
        return None
    items, raters = len(scores), len(scores[0])
    whole = fmean(each for row in scores for each in row)
    rows = raters * fsum((fmean(row) - whole) ** 2 for row in scores)
    columns = items * fsum((fmean(column) - whole) ** 2 for column in zip(*scores, strict=True))
    total = fsum((each - whole) ** 2 for row in scores for each in row)
    left = max(0.0, total - rows - columns)
    return items, raters, rows / (items - 1), columns / (raters - 1), left / ((items - 1) * (raters - 1))
