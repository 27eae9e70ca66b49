"""What scores are worth: sums and spreads, intervals, paired tests. Pure functions; random numbers come from a seed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, cos, fsum, pi, sin, sqrt, tan
from statistics import NormalDist, fmean, pstdev, variance
from typing import Final, Literal, NamedTuple, final

__all__ = ["Interval", "Observed", "holm", "interval", "more_tests", "paired", "permutation_p", "spread", "total"]

LEVEL: Final = 0.95
"""How much of the time an interval is to hold what it is about."""

ALPHA: Final = 0.05
POWER: Final = 0.8
"""`more_tests`: two agents are told apart where p is below ALPHA; with so many tests they would be in POWER of all cases."""

RESAMPLES: Final = 5_000
"""Resamples of a bootstrap."""

SIGNS: Final = 20_000
"""Most sign patterns that a permutation test looks at. Where all there are are no more, it looks at each of them."""


def total(scores: Mapping[str, Sequence[float]]) -> float:
    """The sum over the scenarios of the mean of their tests, each score in [0, 1] (GoodAI, section 4)."""
    return fsum(fmean(tests) for tests in scores.values())


def spread(scores: Mapping[str, Sequence[float]]) -> float:
    """The sum over the scenarios of the population standard deviation of their tests (GoodAI, section 4)."""
    return fsum(pstdev(tests) for tests in scores.values())


# ---- intervals


@final
class Observed(NamedTuple):
    """A test's scenario, the conversation that it was played in, and the least and the most that its score can be: the same
    twice where it has one, else 0 and 1."""

    scenario: str
    conversation: str
    low: float
    high: float


@final
class Interval(NamedTuple):
    """Where the score that is to be expected lies, at a level of 95 %: of such conversations, or of such tests in this one."""

    low: float
    high: float
    by: Literal["conversations", "tests"]


def interval(tests: Sequence[Observed], *, seed: int = 0) -> Interval | None:
    """A bootstrap interval of the `total` of some tests; None where a scenario has one test, which tells nothing of others.

    Two or more conversations with the same scenarios are resampled whole, since what goes wrong early in one may go wrong
    to its end. Few of them happen to be alike now and then: the interval is never narrower than that of the tests. With one
    conversation the tests are resampled within their scenarios, and the interval says nothing of other conversations.

    Of n, n - 1 are drawn (Rao and Wu, 1988), and percentiles are taken further out, as Student's t has it (Hesterberg, 2015):
    those of few are too narrow. Tests without a score widen it: its lower end counts them as 0, its upper one as 1.
    """
    within = _resampled(tests, [(test.scenario, str(number)) for number, test in enumerate(tests)], seed)
    if within is None:
        return None
    held: dict[str, set[str]] = defaultdict(set)
    for test in tests:
        held[test.conversation].add(test.scenario)
    between = _resampled(tests, [("\0".join(sorted(held[test.conversation])), test.conversation) for test in tests], seed)
    if between is None:
        return Interval(*within, by="tests")
    return Interval(min(within[0], between[0]), max(within[1], between[1]), by="conversations")


def _resampled(tests: Sequence[Observed], units: Sequence[tuple[str, str]], seed: int) -> tuple[float, float] | None:
    """The interval from resampling units within their groups; `units` names each test's group and unit. None where a group
    has only one unit. What the units are called and their order change nothing."""
    import numpy as np

    scenarios = sorted({test.scenario for test in tests})
    by_unit = {unit: np.zeros((3, len(scenarios))) for unit in units}  # sums of scores, lowest and highest, and of tests
    for test, unit in zip(tests, units, strict=True):
        by_unit[unit][:, scenarios.index(test.scenario)] += (test.low, test.high, 1)
    held = sorted((group, sums.tolist()) for (group, _), sums in by_unit.items())
    sizes = Counter(group for group, _ in held)
    if not sizes or min(sizes.values()) < 2:
        return None
    random = np.random.default_rng(seed)
    lows, highs = [], []
    for rows in _blocks(RESAMPLES, len(held)):
        low, high, number = drawn = np.zeros((3, rows, len(scenarios)))
        for group, n in sizes.items():
            sums = np.array([each for name, each in held if name == group]).swapaxes(0, 1)  # (3, units, scenarios)
            there = sums[2].any(axis=0)
            drawn[:, :, there] += random.multinomial(n - 1, [1 / n] * n, size=rows).astype(float) @ sums[:, :, there]
        lows.append((low / number).sum(axis=1))
        highs.append((high / number).sum(axis=1))
    tail = NormalDist().cdf(-_student(sum(sizes.values()) - len(sizes)))
    return float(np.quantile(np.concatenate(lows), tail)), float(np.quantile(np.concatenate(highs), 1 - tail))


def _student(freedom: int) -> float:
    """How far from 0 Student's t lies at LEVEL, with a whole number of degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4).

    scipy.special.stdtrit gives the same. Every report needs this, and importing scipy takes about as long as a conversation of 2k.
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
    """So many rows, in blocks that fit into memory however wide they are."""
    most = max(1, 2_000_000 // max(1, width))
    return (min(most, rows - start) for start in range(0, rows, most))


# ---- two agents


def paired(differences: Mapping[str, Sequence[float]]) -> list[float]:
    """What each pair of tests adds to the difference of two totals: `differences` of scores by scenario."""
    return [each / len(group) for group in differences.values() for each in group]


def permutation_p(parts: Sequence[float], *, seed: int = 0) -> float:
    """The two-sided p-value of a paired permutation test: how often the sum of `parts` is as far from 0 as it is, where each
    part could as well have had the other sign. 1 where all are 0.

    Exact up to fourteen parts that are not 0; beyond, the share of random sign patterns, the observed one among them.
    scipy.stats.permutation_test tests the same and takes 7 to 18 times as long, after an import of about a second. For all
    pairs of twenty agents, 33 tests each, that is 10 seconds of the processor instead of 1.5.
    """
    import numpy as np

    values = np.sort([abs(part) for part in parts if part])  # all signs are tried anyway: neither they nor the order matter
    observed = abs(fsum(parts)) - 1e-9  # sums that are equal but for rounding are equal
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
    """p-values of several tests made at once, in the same order, corrected by Holm (1979): that any of those below a level is
    there by chance is no more likely than the level."""
    corrected = [0.0] * len(ps)
    highest = 0.0
    for rank, at in enumerate(sorted(range(len(ps)), key=lambda each: ps[each])):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[at]))
        corrected[at] = highest
    return corrected


def more_tests(differences: Mapping[str, Sequence[float]]) -> int | None:
    """How many more tests, spread over the scenarios like those there are, would tell two agents apart in four of five cases:
    at a level of 5 %, before correcting for other comparisons. None where they are equal: no number will do.

    Worked out from the difference of the totals and its standard error, both of them estimates. At least as many tests are
    asked for as give six pairs that differ: with five, a permutation test cannot come below 5 %.
    """
    parts = paired(differences)
    difference, count = fsum(parts), len(parts)
    if abs(difference) < 1e-9:
        return None
    everything = [each for group in differences.values() for each in group]
    square = fsum(_variance(group, everything) / len(group) for group in differences.values())
    wanted = ((NormalDist().inv_cdf(1 - ALPHA / 2) + NormalDist().inv_cdf(POWER)) * sqrt(square) / difference) ** 2 * count
    least = 6 * count / sum(part != 0 for part in parts)
    return max(0, ceil(max(wanted, least) - 1e-9) - count)


def _variance(group: Sequence[float], everything: Iterable[float]) -> float:
    """A scenario's variance of differences; that of all, where it has one test."""
    values = group if len(group) > 1 else list(everything)
    return variance(values) if len(values) > 1 else 0.0
