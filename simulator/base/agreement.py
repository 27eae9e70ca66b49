"""Measures of agreement between raters, and a test for lower scores. All are pure functions of scores."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, isfinite, sqrt
from statistics import fmean, pstdev, stdev, variance
from typing import Final, NamedTuple, final

__all__ = ["Mean", "icc_one_way", "icc_two_way", "kappa", "mean_interval", "pearson", "spearman", "welch_p_lower"]

LEVEL: Final = 0.95


@final
class Mean(NamedTuple):
    """A mean with its 95% confidence interval (Student's t). The bounds are None for a single value."""

    value: float
    low: float | None
    high: float | None


def mean_interval(values: Sequence[float]) -> Mean | None:
    """Return the mean of values with its interval, or None without values."""
    if not values:
        return None
    mean = fmean(values)
    if len(values) < 2:
        return Mean(mean, None, None)
    from scipy.special import stdtrit

    half = float(stdtrit(len(values) - 1, (1 + LEVEL) / 2)) * stdev(values) / sqrt(len(values))
    return Mean(mean, mean - half, mean + half)


def pearson(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Return Pearson's correlation of pairs, or None for fewer than two pairs or a constant side."""
    if len(left) < 2 or len(left) * pstdev(left) * pstdev(right) < 1e-12:
        return None
    from scipy.stats import pearsonr

    return float(pearsonr(left, right).statistic)


def spearman(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Return Spearman's correlation: Pearson's correlation of ranks, where ties share a rank. Returns None in the same cases."""
    from scipy.stats import rankdata

    return pearson(rankdata(left).tolist(), rankdata(right).tolist())


def kappa(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Return Cohen's kappa with quadratic weights: 1 for full agreement, 0 for agreement at chance level.

    Returns None without pairs, and if both sides are constant and equal.
    """
    if not left:
        return None
    observed = fmean((a - b) ** 2 for a, b in zip(left, right, strict=True))
    # Over all pairs of a left and a right value: E(a - b)^2 = E a^2 - 2 E a E b + E b^2.
    a, b = fmean(left), fmean(right)
    by_chance = fmean((value - a) ** 2 for value in left) + fmean((value - b) ** 2 for value in right) + (a - b) ** 2
    return None if by_chance < 1e-12 else 1 - observed / by_chance


def icc_two_way(scores: Sequence[Sequence[float]]) -> float | None:
    """Return ICC(2,k): the reliability of the mean of k random raters who all rate every item (Shrout and Fleiss, 1979).

    `scores` has a row per item, with the scores of all raters in the same order. Returns None for fewer than two items or raters, and if
    nothing varies. Raises ValueError if rows differ in length.
    """
    if (squares := _two_way(scores)) is None:
        return None
    items, raters, between, by_rater, error = squares
    below = between + (by_rater - error) / items
    return None if abs(below) < 1e-12 or raters < 2 else (between - error) / below


def icc_one_way(scores: Sequence[Sequence[float]]) -> float | None:
    """Return ICC(1,k): the reliability of the mean of k raters, where each item may have other raters (Shrout and Fleiss, 1979).

    `scores` has a row per item, with the scores of its raters. Returns None for fewer than two items or raters, and if nothing varies.
    Raises ValueError if rows differ in length.
    """
    if len({len(row) for row in scores}) > 1:
        raise ValueError("every item must have the same number of scores")
    if len(scores) < 2 or len(scores[0]) < 2:
        return None
    raters = len(scores[0])
    between = raters * variance([fmean(row) for row in scores])
    within = fmean(variance(row) for row in scores)
    return None if between < 1e-12 else (between - within) / between


def welch_p_lower(some: Sequence[float], others: Sequence[float]) -> float | None:
    """Return the p-value of a one-tailed Welch test (unequal variances) that the mean of `some` is below the mean of `others`.

    Returns None if one side has fewer than two values, or if neither varies.
    """
    if len(some) < 2 or len(others) < 2:
        return None
    a, b = stdev(some), stdev(others)
    if a**2 / len(some) + b**2 / len(others) < 1e-18:
        return None
    from scipy.stats import ttest_ind_from_stats  # ttest_ind warns if one side is constant

    test = ttest_ind_from_stats(fmean(some), a, len(some), fmean(others), b, len(others), equal_var=False, alternative="less")
    return float(test.pvalue) if isfinite(test.pvalue) else None


def _two_way(scores: Sequence[Sequence[float]]) -> tuple[int, int, float, float, float] | None:
    """Return the numbers of items and raters, and the mean squares between items, between raters, and of the residual."""
    if len({len(row) for row in scores}) > 1:
        raise ValueError("every item must have the same number of scores")
    if len(scores) < 2 or len(scores[0]) < 2:
        return None
    items, raters = len(scores), len(scores[0])
    mean = fmean(score for row in scores for score in row)
    rows = raters * fsum((fmean(row) - mean) ** 2 for row in scores)
    columns = items * fsum((fmean(column) - mean) ** 2 for column in zip(*scores, strict=True))
    total = fsum((score - mean) ** 2 for row in scores for score in row)
    residual = max(0.0, total - rows - columns)
    return items, raters, rows / (items - 1), columns / (raters - 1), residual / ((items - 1) * (raters - 1))
