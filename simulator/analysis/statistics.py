"""Statistics of scores: totals, spreads, confidence intervals and paired tests. Pure functions; randomness comes from a seed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, cos, fsum, pi, sin, sqrt, tan
from statistics import NormalDist, fmean, pstdev, variance
from typing import Final, Literal, NamedTuple, final

__all__ = ["Interval", "Observed", "holm", "interval", "more_tests", "paired", "permutation_p", "spread", "student", "total"]

LEVEL: Final = 0.95
"""The confidence level of intervals."""

ALPHA: Final = 0.05
POWER: Final = 0.8
"""For `more_tests`: the significance level, and the probability of reaching it with that many tests."""

RESAMPLES: Final = 5_000
"""Samples of a bootstrap."""

SIGNS: Final = 20_000
"""Maximum sign patterns of a permutation test, which is exact if there are no more than that."""


def total(scores: Mapping[str, Sequence[float]]) -> float:
    """The sum over the scenarios of the mean of their tests, each score in [0, 1] (GoodAI, section 4)."""
    return fsum(fmean(tests) for tests in scores.values())


def spread(scores: Mapping[str, Sequence[float]]) -> float:
    """The sum over the scenarios of the population standard deviation of their tests (GoodAI, section 4)."""
    return fsum(pstdev(tests) for tests in scores.values())


# ---- intervals


@final
class Observed(NamedTuple):
    """A test's scenario and conversation, and its lowest and highest possible score: equal if it has a score, else 0 and 1."""

    scenario: str
    conversation: str
    low: float
    high: float


@final
class Interval(NamedTuple):
    """A 95% interval of the expected score, over such conversations or over such tests in this one."""

    low: float
    high: float
    by: Literal["conversations", "tests"]


def interval(tests: Sequence[Observed], *, seed: int = 0) -> Interval | None:
    """Return a bootstrap interval of the `total` of tests, or None if a scenario has only one test.

    Two or more conversations with the same scenarios are resampled as a whole, since an early error may affect the rest of a
    conversation. A few of them may be alike by chance, so the interval is never narrower than that of the tests. With a single
    conversation, tests are resampled within their scenarios, and the interval says nothing about other conversations.

    Percentile intervals of small samples are too narrow. So n - 1 of n are drawn (Rao and Wu, 1988), and percentiles are widened
    as by Student's t (Hesterberg, 2015). Tests without a score widen the interval: they count as 0 in its lower end and as 1 in
    its upper one.
    """
    within = _resampled(tests, [(test.scenario, str(number)) for number, test in enumerate(tests)], seed)
    if within is None:
        return None
    scenarios: dict[str, set[str]] = defaultdict(set)
    for test in tests:
        scenarios[test.conversation].add(test.scenario)
    between = _resampled(tests, [("\0".join(sorted(scenarios[test.conversation])), test.conversation) for test in tests], seed)
    if between is None:
        return Interval(*within, by="tests")
    return Interval(min(within[0], between[0]), max(within[1], between[1]), by="conversations")


def _resampled(tests: Sequence[Observed], units: Sequence[tuple[str, str]], seed: int) -> tuple[float, float] | None:
    """Return the interval from resampling units within their groups, or None if a group has only one unit.

    `units` has the group and the unit of each test. The names and the order of units do not matter.
    """
    import numpy as np

    scenarios = sorted({test.scenario for test in tests})
    by_unit = {unit: np.zeros((3, len(scenarios))) for unit in units}  # sums of scores, lowest and highest, and of tests
    for test, unit in zip(tests, units, strict=True):
        by_unit[unit][:, scenarios.index(test.scenario)] += (test.low, test.high, 1)
    rows_by_group = sorted((group, sums.tolist()) for (group, _), sums in by_unit.items())
    sizes = Counter(group for group, _ in rows_by_group)
    if not sizes or min(sizes.values()) < 2:
        return None
    random = np.random.default_rng(seed)
    lows, highs = [], []
    for rows in _blocks(RESAMPLES, len(rows_by_group)):
        low, high, number = drawn = np.zeros((3, rows, len(scenarios)))
        for group, n in sizes.items():
            sums = np.array([unit for name, unit in rows_by_group if name == group]).swapaxes(0, 1)  # (3, units, scenarios)
            present = sums[2].any(axis=0)
            drawn[:, :, present] += random.multinomial(n - 1, [1 / n] * n, size=rows).astype(float) @ sums[:, :, present]
        lows.append((low / number).sum(axis=1))
        highs.append((high / number).sum(axis=1))
    tail = NormalDist().cdf(-student(sum(sizes.values()) - len(sizes)))
    return float(np.quantile(np.concatenate(lows), tail)), float(np.quantile(np.concatenate(highs), 1 - tail))


def student(freedom: int) -> float:
    """Return the two-sided quantile of Student's t at LEVEL for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4).

    Equal to scipy.special.stdtrit, but every report needs it, and importing scipy takes about as long as a conversation of 2k.
    """
    import numpy as np

    odd = freedom % 2
    steps = np.arange(2 + odd, freedom, 2)
    low, high = 0.0, pi / 2  # of the angle whose tangent is t / sqrt(freedom)
    for _ in range(60):
        angle = (low + high) / 2
        series = sin(angle) * (1 + float(np.cumprod((steps - 1) / steps * cos(angle) ** 2).sum()))
        within = 2 / pi * (angle + (series * cos(angle) if freedom > 1 else 0)) if odd else series
        low, high = (angle, high) if within < LEVEL else (low, angle)
    return tan(low) * sqrt(freedom)


def _blocks(rows: int, width: int) -> Iterable[int]:
    """Split a number of rows into blocks that fit into memory."""
    block = max(1, 2_000_000 // max(1, width))
    return (min(block, rows - start) for start in range(0, rows, block))


# ---- two agents


def paired(differences: Mapping[str, Sequence[float]]) -> list[float]:
    """Return what each pair of tests contributes to the difference of two totals, from `differences` of scores by scenario."""
    return [difference / len(group) for group in differences.values() for difference in group]


def permutation_p(parts: Sequence[float], *, seed: int = 0) -> float:
    """Return the two-sided p-value of a paired permutation test, which flips the signs of `parts`. It is 1 if all are 0.

    Exact for up to fourteen parts other than 0. Beyond that it is the share of random sign patterns, including the observed one.
    scipy.stats.permutation_test gives the same result in 7 to 18 times the time, after an import of about a second. For all pairs
    of twenty agents with 33 tests each, that is 10 seconds of CPU time instead of 1.5.
    """
    import numpy as np

    values = np.sort([abs(part) for part in parts if part])  # all signs are tried, so that neither signs nor order matter
    observed = abs(fsum(parts)) - 1e-9  # tolerates rounding
    if 2 ** len(values) <= SIGNS:
        bits = np.arange(2 ** len(values))[:, None] >> np.arange(len(values)) & 1
        return float(np.mean(np.abs((2 * bits - 1) @ values) >= observed))
    random = np.random.default_rng(seed)
    as_far = 1  # the observed pattern
    for rows in _blocks(SIGNS - 1, len(values)):
        signs = 2 * random.integers(0, 2, size=(rows, len(values)), dtype=np.int8) - 1
        as_far += int(np.count_nonzero(np.abs(signs @ values) >= observed))
    return as_far / SIGNS


def holm(ps: Sequence[float]) -> list[float]:
    """Correct the p-values of simultaneous tests by Holm's method (1979), in the same order. The probability of any false positive
    at a level is at most that level."""
    corrected = [0.0] * len(ps)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=lambda index: ps[index])):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[index]))
        corrected[index] = highest
    return corrected


def more_tests(differences: Mapping[str, Sequence[float]]) -> int | None:
    """Return how many more tests would show the difference of two agents in four of five cases, or None if they are equal.

    The level is 5%, before correction for other comparisons, and the new tests are spread over the scenarios like the present ones.
    The number is computed from the difference of the totals and its standard error, both of them estimates. It gives at least six
    pairs that differ: with five, a permutation test cannot reach 5%.
    """
    parts = paired(differences)
    difference, count = fsum(parts), len(parts)
    if abs(difference) < 1e-9:
        return None
    everything = [difference for group in differences.values() for difference in group]
    square = fsum(_variance(group, everything) / len(group) for group in differences.values())
    needed = ((NormalDist().inv_cdf(1 - ALPHA / 2) + NormalDist().inv_cdf(POWER)) * sqrt(square) / difference) ** 2 * count
    least = 6 * count / sum(part != 0 for part in parts)
    return max(0, ceil(max(needed, least) - 1e-9) - count)


def _variance(group: Sequence[float], everything: Iterable[float]) -> float:
    """Return the variance of a scenario's differences, or that of all differences if it has one test."""
    values = group if len(group) > 1 else list(everything)
    return variance(values) if len(values) > 1 else 0.0
