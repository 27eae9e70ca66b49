"""Statistics of scores: totals, spreads, confidence intervals and paired tests. Pure functions; randomness comes from a seed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache
from math import ceil, cos, floor, fsum, inf, log2, pi, sin, sqrt, tan
from statistics import NormalDist, fmean, pstdev
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, final

from longspan.simulator.results.effects import paired_interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Labels = NDArray[np.int64]

__all__ = [
    "Difference",
    "Interval",
    "Observed",
    "by_conversation",
    "by_test",
    "effect_interval",
    "fall_p",
    "holm",
    "interval",
    "intervals",
    "least_conversations",
    "least_p",
    "limits",
    "more_conversations",
    "paired_p",
    "permutation_p",
    "shown_in_four_of_five",
    "spread",
    "student",
    "total",
]

LEVEL: Final = 0.95
"""The confidence level of intervals."""

ALPHA: Final = 0.05
POWER: Final = 0.8
"""For `more_conversations`: the significance level, and the probability of reaching it with that many conversations."""

ADVISED: Final = 8
"""How many conversations are recommended to compare two agents: with the fewest that can show anything, only a difference that has the
same sign in each is shown."""

PRIOR: Final = 3
"""The degrees of freedom given to the assumption that tests are all or nothing and equally hard. They keep the interval of tests that
happen to be alike from collapsing; with three, scenarios of very different rates are covered in 95% of cases (simulated)."""

FLOOR: Final = 0.45
"""The least width of an interval over conversations, as a share of that over tests, since a few conversations may be alike by chance.
With less, two conversations cover too few cases, and with more, three of them too many (simulated)."""

SEVERAL: Final = 6
"""Conversations from which on the interval of an effect has the width that Student's t gives it. With fewer, it covers 95% of cases or more
without (simulated)."""

SIGNS: Final = 20_000
"""Maximum sign patterns of a permutation test, which is exact if there are no more than that."""

SAMPLES: Final = 2_000
"""Samples by which the power of the permutation test is found, to about one in a hundred."""

STEPS: Final = 20
"""Halvings by which the ends of `limits` are found: to a millionth."""

TIE: Final = 1e-6
"""The weight of what decides between sign patterns with the same difference of totals (see `paired_p`)."""


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
    """A 95% interval of the expected score, over such conversations or over such tests in this one. It is never empty."""

    low: float
    high: float
    by: Literal["conversations", "tests"]

    def ends(self, digits: int = 2, unit: float = 1) -> tuple[str, str]:
        """Both ends as text, with so many digits after the point, or with as many as tell them apart."""
        low, high = self.low / unit, self.high / unit
        return next(pair for more in range(digits, 20) if (pair := (f"{low:.{more}f}", f"{high:.{more}f}"))[0] != pair[1])


def interval(tests: Sequence[Observed]) -> Interval | None:
    """Return the interval of the `total` of tests, or None if a scenario has only one test.

    Tests without a score widen it: they count as 0 in its lower end and as 1 in its upper one. See `intervals` for the method.
    """
    if not tests or min(Counter(test.scenario for test in tests).values()) < 2:
        return None
    import numpy as np

    scores = np.array([[test.low for test in tests], [test.high for test in tests]])
    lows, highs, by = intervals([test.scenario for test in tests], [test.conversation for test in tests], scores)
    return Interval(round(float(lows[0]), 9), round(float(highs[1]), 9), by)  # rounded, since the order of tests changes the last digits


def intervals(
    scenarios: Sequence[str], conversations: Sequence[str], scores: Floats
) -> tuple[Floats, Floats, Literal["conversations", "tests"]]:
    """Return the lower and upper ends of the intervals of many `total`s of the same tests, shape (...), and what they are over.

    `scenarios` and `conversations` are those of the tests, at least two tests of each scenario; `scores` has shape (..., tests).

    It is Wilson's interval (1927) of the mean share of full marks, with as many tests as would be as informative if all of them
    were independent and equally hard: their number divided by the design effect (Kish, 1965; for intervals near 0 and 1, Franco,
    Little, Louis and Slud, 2019). The design effect compares a variance of the total with that of such tests. Within a conversation
    it is the variance of tests within their scenarios. Two or more conversations with the same scenarios are wholes, since an early
    error may affect the rest of a conversation: it is the variance between them, with the quantile of Student's t, but at most that
    of conversations that are right or wrong as wholes.
    """
    import numpy as np

    kinds, wholes = _labels(scenarios), _labels(conversations)
    sizes = np.bincount(kinds)
    share = (_sums(scores, kinds) / sizes).mean(axis=-1)
    number = len(sizes) ** 2 / (1 / sizes).sum()  # of tests; if scenarios differ in it, as many as would be as informative
    alike = share * (1 - share) / (number - 1)
    parts = scores / (sizes[kinds] * len(sizes))
    freedom = len(kinds) - len(sizes)
    normal = NormalDist().inv_cdf((1 + LEVEL) / 2) ** 2
    effect = (freedom * _ratio(_variance(parts, np.arange(len(kinds)), kinds), alike) + PRIOR) / (freedom + PRIOR)
    width = effect * normal
    groups = _scenario_sets(scenarios, conversations)
    fewest = int(np.bincount(groups).min())
    by: Literal["conversations", "tests"] = "conversations" if fewest > 1 else "tests"
    if fewest > 1 and len(groups) < len(kinds):
        between = _ratio(_variance(parts, wholes, groups), alike) * student(fewest - 1) ** 2
        width = np.maximum(np.minimum(between, normal * number / fewest), FLOOR**2 * width)
    shrunk = width / number
    centre = (share + shrunk / 2) / (1 + shrunk)
    half = np.sqrt(shrunk * (share * (1 - share) + shrunk / 4)) / (1 + shrunk)
    return len(sizes) * np.maximum(0, centre - half), len(sizes) * np.minimum(1, centre + half), by


def _labels(names: Iterable[Hashable]) -> Labels:
    """Number the names from 0 in the order in which they first appear."""
    import numpy as np

    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names])


def _scenario_sets(scenarios: Sequence[str], conversations: Sequence[Hashable]) -> Labels:
    """Return a label of the set of scenarios of each conversation, in the order in which conversations first appear."""
    sets: dict[Hashable, set[str]] = defaultdict(set)
    for scenario, conversation in zip(scenarios, conversations, strict=True):
        sets[conversation].add(scenario)
    return _labels(map(frozenset, sets.values()))


def _sums(values: Floats, labels: Labels) -> Floats:
    """Sum values, shape (..., n), by their labels from 0 to m - 1, each of which is in use; the shape is then (..., m)."""
    import numpy as np

    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(labels.max() + 1))
    found: Floats = np.add.reduceat(values[..., order], starts, axis=-1)
    return found


def _variance(parts: Floats, units: Labels, groups: Labels) -> Any:
    """Return the variance, shape (...), of the sum of parts, shape (..., n), from how the sums of units differ within their groups.

    `units` has the label of each part's unit, `groups` that of each unit's group. Each group needs two units or more.
    """
    import numpy as np

    sums, sizes = _sums(parts, units), np.bincount(groups)
    apart = (sums - (_sums(sums, groups) / sizes)[..., groups]) ** 2
    return (_sums(apart, groups) * sizes / (sizes - 1)).sum(axis=-1)


def _ratio(variance: Any, alike: Any) -> Any:
    """Return a design effect, which is 1 if all scores are 0 or all are 1."""
    import numpy as np

    return np.divide(variance, alike, out=np.ones_like(alike), where=alike > 1e-12)


def student(freedom: int, level: float = LEVEL) -> float:
    """Return the two-sided quantile of Student's t at a level for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4).

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
        low, high = (angle, high) if within < level else (low, angle)
    return tan(low) * sqrt(freedom)


# ---- two agents


@final
class Difference(NamedTuple):
    """By how much one agent's score of a test is higher than another's, in [-1, 1]. `conversation` names the pair of conversations in
    which they had the test."""

    scenario: str
    conversation: Hashable
    value: float


def by_test(differences: Sequence[Difference]) -> list[float]:
    """Return what each pair of tests contributes to the difference of two totals."""
    sizes = Counter(each.scenario for each in differences)
    return [each.value / sizes[each.scenario] for each in differences]


def by_conversation(differences: Sequence[Difference]) -> list[float]:
    """Return what each pair of conversations contributes to the difference of two totals."""
    return _by_conversation(differences, by_test(differences))


def _by_conversation(differences: Sequence[Difference], parts: Sequence[float]) -> list[float]:
    sums: dict[Hashable, list[float]] = defaultdict(list)
    for each, part in zip(differences, parts, strict=True):
        sums[each.conversation].append(part)
    return [fsum(group) for group in sums.values()]


def paired_p(differences: Sequence[Difference]) -> float:
    """Return the two-sided p-value of a paired permutation test, which swaps the two agents' results of whole conversations.

    Scores have few values, so that totals often tie in a conversation, which then would not count. So a second statistic decides
    between patterns with the same difference of totals (as Streitberg and Röhmel, 1990, do for ranks): the difference in which a
    scenario counts the more, the less the agents differ in it. The p-value stays exact. It is 1 if the totals are equal.
    """
    parts = _parted(differences)
    return permutation_p(parts) if parts else 1.0


def fall_p(falls: Sequence[Difference], margin: float = 0.0) -> float:
    """Return the one-sided p-value of a fall by `margin` of full marks at most, by the test of `paired_p`. It is 1 if the fall is exactly
    that."""
    parts = _parted([each._replace(value=each.value - margin) for each in falls])
    return permutation_p(parts, one_sided=True) if parts else 1.0


def _parted(differences: Sequence[Difference]) -> list[float]:
    """Return what conversations contribute to a paired permutation test, nothing if the totals are equal."""
    parts = by_conversation(differences)
    if abs(fsum(parts)) < 1e-9:
        return []
    apart: dict[str, float] = defaultdict(float)
    for each in differences:
        apart[each.scenario] += abs(each.value)
    leanings = _by_conversation(differences, [each.value and each.value / apart[each.scenario] for each in differences])
    return [part + TIE * leaning for part, leaning in zip(parts, leanings, strict=True)]


def permutation_p(parts: Sequence[float], *, one_sided: bool = False, seed: int = 0) -> float:
    """Return the p-value of a permutation test, which flips the signs of `parts`. It is 1 if all are 0. `one_sided`: only sums that are as
    high count, not those as low.

    Exact for up to fourteen parts other than 0. Beyond that it is the share of random sign patterns, including the observed one.
    scipy.stats.permutation_test gives the same result in 7 to 18 times the time, after an import of about a second. For all pairs
    of twenty agents with 33 tests each, that is 10 seconds of CPU time instead of 1.5.
    """
    import numpy as np

    values = np.sort([abs(part) for part in parts if part])  # all signs are tried, so that neither signs nor order matter
    far: Callable[[Any], Any] = (lambda sums: sums) if one_sided else abs
    observed = far(fsum(parts)) - 1e-9  # tolerates rounding
    if 2 ** len(values) <= SIGNS:
        bits = np.arange(2 ** len(values))[:, None] >> np.arange(len(values)) & 1
        return float(np.mean(far((2 * bits - 1) @ values) >= observed))
    random = np.random.default_rng(seed)
    as_far = 1  # the observed pattern
    for rows in _blocks(SIGNS - 1, len(values)):
        signs = 2 * random.integers(0, 2, size=(rows, len(values)), dtype=np.int8) - 1
        as_far += int(np.count_nonzero(far(signs @ values) >= observed))
    return as_far / SIGNS


def _blocks(rows: int, width: int) -> Iterable[int]:
    """Split a number of rows into blocks that fit into memory."""
    block = max(1, 2_000_000 // max(1, width))
    return (min(block, rows - start) for start in range(0, rows, block))


@cache
def shown_in_four_of_five(conversations: int) -> float:
    """Return the fall, in standard deviations of the conversations, that `fall_p` shows at ALPHA with a probability of POWER.

    Differences of conversations are taken to be normal. The standard deviation is that of as many other conversations, a pilot's: since it
    may be too small by chance, the fall is greater than one would need who knew the true one. Of conversations few enough for an exact
    test it is found with that very test, whose p-values are few; of more, whose test is hardly another than Student's, by that.
    """
    import numpy as np

    random = np.random.default_rng(0)
    pilots = random.standard_normal((SAMPLES, conversations)).std(axis=1, ddof=1)
    least = _least_shown(conversations, random)
    return float(np.quantile(least[:, None] / pilots, POWER))


def _least_shown(conversations: int, random: Generator) -> Floats:
    """Return, for each of some samples, the least fall that the test shows, in true standard deviations; infinite if it shows none.

    A pattern of signs has a sum as high as the observed one if the mean of the conversations that it flips is not positive. So each sample
    has a least fall that is shown: less than ALPHA of all patterns may flip conversations whose mean is below it.
    """
    import numpy as np

    if 2**conversations > SIGNS:
        drawn = random.standard_normal((SAMPLES, conversations))
        needed = student(conversations - 1, 1 - 2 * ALPHA) * drawn.std(axis=1, ddof=1) / sqrt(conversations)
        return np.asarray(needed - drawn.mean(axis=1))
    flipped = (np.arange(1, 2**conversations)[:, None] >> np.arange(conversations) & 1).astype(float)
    others = ceil(ALPHA * 2**conversations) - 2  # patterns besides the observed one that may be as high
    if others < 0:
        return np.full(SAMPLES, inf)
    flipped /= flipped.sum(axis=1, keepdims=True)
    return np.concatenate(
        [
            -np.partition(random.standard_normal((block, conversations)) @ flipped.T, others, axis=1)[:, others]
            for block in [SAMPLES // 20] * 20
        ]
    )


def limits(differences: Sequence[Difference], tail: float) -> tuple[float, float] | None:
    """Return the lowest and the highest mean difference that the one-sided permutation tests of conversations do not reject at the level
    `tail` each: an interval at the level 1 - 2 `tail`. -1 and 1 are its ends where conversations are too few to reject anything.

    It is a share of full marks, the mean over the scenarios. None if all conversations differ by the same, since they then tell nothing of
    how others would.
    """
    import numpy as np

    parts, sizes = np.array(by_conversation(differences)), Counter(each.scenario for each in differences)
    shares = np.array(by_conversation([each._replace(value=1.0) for each in differences]))
    means = parts / shares
    if len(sizes) == 0 or np.ptp(means) < 1e-9:
        return None

    def rejects(margin: float, sign: int) -> bool:
        return permutation_p([float(part) for part in sign * (parts - margin * shares)], one_sided=True) < tail

    def end(sign: int) -> float:
        """The furthest margin from 0 on the side of `-sign` that is not rejected, found by halving."""
        inside, outside = float(parts.sum() / shares.sum()), -float(sign)
        if not rejects(outside, sign):
            return outside
        for _ in range(STEPS):
            middle = (inside + outside) / 2
            inside, outside = (inside, middle) if rejects(middle, sign) else (middle, outside)
        return inside

    return end(1), end(-1)


def holm(ps: Sequence[float]) -> list[float]:
    """Correct the p-values of simultaneous tests by Holm's method (1979), in the same order. The probability of any false positive
    at a level is at most that level."""
    corrected = [0.0] * len(ps)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=lambda index: ps[index])):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[index]))
        corrected[index] = highest
    return corrected


def least_conversations(pairs: int, *, sides: int = 2, alpha: float = ALPHA) -> int:
    """Return the fewest conversations with which one of so many pairs of agents can be significant: 6 for one pair.

    A permutation test of n conversations has no p below `least_p`, and the smallest p is multiplied by the number of pairs.
    """
    return floor(log2(sides * pairs / alpha)) + 1


def least_p(conversations: int, sides: int) -> float:
    """Return the lowest p-value that a permutation test of so many conversations can have: one-sided 1 / 2**n, two-sided twice that."""
    return min(1.0, sides * 0.5**conversations)


def more_conversations(differences: Sequence[Difference], pairs: int = 1) -> int | None:
    """Return how many more conversations would show the difference of two agents in four of five cases, or None if they are equal.

    The level is 5% for all `pairs` together. The number is computed from the difference of the totals and its variance, both of them
    estimates, by the normal approximation with Guenther's correction (1981) for Student's t. The variance is that between the
    conversations, but not less than that of the tests, which is all that a single conversation tells.
    """
    parts = by_conversation(differences)
    difference, count = fsum(parts), len(parts)
    if abs(difference) < 1e-9:
        return None
    level = NormalDist().inv_cdf(1 - ALPHA / 2 / pairs)
    needed = (level + NormalDist().inv_cdf(POWER)) ** 2 * _variance_of(differences) / difference**2 * count + level**2 / 2
    least = least_conversations(pairs) * count / sum(part != 0 for part in parts)
    return max(0, ceil(max(needed, least) - 1e-9) - count)


def _variance_of(differences: Sequence[Difference]) -> float:
    """Return the variance of the difference of two totals. Scenarios with a single test are pooled; of a single test it is 0."""
    import numpy as np

    parts = np.array(by_test(differences))
    kinds = _labels(each.scenario for each in differences)
    if np.bincount(kinds).min() < 2:
        kinds = np.zeros_like(kinds)
    if len(kinds) < 2:
        return 0.0
    wholes = _labels(each.conversation for each in differences)
    groups = _scenario_sets([each.scenario for each in differences], [each.conversation for each in differences])
    between = _variance(parts, wholes, groups) if np.bincount(groups).min() > 1 else 0.0
    return float(max(between, _variance(parts, np.arange(len(kinds)), kinds)))


# ---- experiments


def effect_interval(differences: Sequence[Difference]) -> Interval:
    """Return the interval of the mean difference of tests' scores with and without what an experiment takes away, in [-1, 1].

    Over tests it is `paired_interval`. Of two or more conversations, of which one has several tests, it is over conversations if that is
    wider: their variance is that of their sums about the mean (a ratio estimate; Cochran, 1977), with the quantile of Student's t. Of fewer
    than SEVERAL it ends where that of their means does, as if each were one test: t would say nothing.
    """
    values = [each.value for each in differences]
    low, high = paired_interval(values)
    groups: dict[Hashable, list[float]] = defaultdict(list)
    for each in differences:
        groups[each.conversation].append(each.value)
    if not 1 < len(groups) < len(values):
        return Interval(low, high, "tests" if len(groups) == 1 else "conversations")
    mean = fmean(values)
    apart = fsum(fsum(value - mean for value in group) ** 2 for group in groups.values())
    half = student(len(groups) - 1) * sqrt(apart * len(groups) / (len(groups) - 1)) / len(values)
    least, most = paired_interval([fmean(group) for group in groups.values()]) if len(groups) < SEVERAL else (-1.0, 1.0)
    return Interval(min(low, max(mean - half, least)), max(high, min(mean + half, most)), "conversations")
