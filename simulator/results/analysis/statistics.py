"""Statistics of scores: totals, spreads, confidence intervals and paired tests. Pure functions; randomness comes from a seed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache
from math import ceil, cos, floor, fsum, inf, log2, pi, sin, sqrt, tan
from statistics import NormalDist, fmean, pstdev
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, final

from longspan.simulator.results.effects import difference_interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Labels = NDArray[np.int64]

__all__ = [
    "Difference",
    "Interval",
    "ObservedTest",
    "by_conversation",
    "by_test",
    "detectable_shift",
    "difference_limits",
    "effect_interval",
    "fall_p",
    "holm",
    "least_conversations",
    "least_p",
    "more_conversations",
    "paired_permutation_p",
    "permutation_p",
    "score_spread",
    "student_quantile",
    "total_interval",
    "total_intervals",
    "total_score",
]

LEVEL: Final = 0.95
"""The confidence level of intervals."""

ALPHA: Final = 0.05
POWER: Final = 0.8
"""For `more_conversations`: the significance level, and the probability of reaching it with the estimated number of conversations."""

ADVISED: Final = 8
"""The number of conversations recommended to compare two agents. The fewest that can show anything only show a difference with the same
sign in each."""

PRIOR: Final = 3
"""The degrees of freedom given to the assumption that tests are all or nothing and equally hard.

They keep the interval from collapsing when tests happen to be alike. With three, it covers 95% of cases even if the scenarios' rates are
very different (simulated).
"""

FLOOR: Final = 0.45
"""The least width of an interval over conversations, as a share of the interval over tests, since a few conversations may be alike by
chance. With less, intervals over two conversations cover too few cases; with more, intervals over three cover too many (simulated)."""

SEVERAL: Final = 6
"""With this many conversations, the interval of an effect has the width given by Student's t. With fewer, it covers 95% of cases or more
even without that width (simulated)."""

SIGNS: Final = 20_000
"""The maximum number of sign patterns in a permutation test. The test is exact if there are no more than that."""

SAMPLES: Final = 2_000
"""The number of samples used to find the power of the permutation test, to about one in a hundred."""

TIE: Final = 1e-6
"""The weight of the statistic that decides between sign patterns with the same difference of totals (see `paired_permutation_p`)."""


def total_score(scores: Mapping[str, Sequence[float]]) -> float:
    """Return the sum over scenarios of the mean score of their tests, each in [0, 1] (GoodAI, section 4)."""
    return fsum(fmean(tests) for tests in scores.values())


def score_spread(scores: Mapping[str, Sequence[float]]) -> float:
    """Return the sum over scenarios of the population standard deviation of their tests (GoodAI, section 4)."""
    return fsum(pstdev(tests) for tests in scores.values())


# ---- intervals


@final
class ObservedTest(NamedTuple):
    """A test's scenario and conversation, and its lowest and highest possible score: equal if it has a score, else 0 and 1."""

    scenario: str
    conversation: str
    low: float
    high: float


@final
class Interval(NamedTuple):
    """A 95% interval of the expected score, over similar conversations or over similar tests in this one. It is never empty."""

    low: float
    high: float
    by: Literal["conversations", "tests"]

    def ends(self, digits: int = 2, unit: float = 1) -> tuple[str, str]:
        """Return both ends as strings, with this many digits after the point, or more if they would be equal."""
        low, high = self.low / unit, self.high / unit
        return next(pair for more in range(digits, 20) if (pair := (f"{low:.{more}f}", f"{high:.{more}f}"))[0] != pair[1])


def total_interval(tests: Sequence[ObservedTest]) -> Interval | None:
    """Return the interval of the `total_score` of tests, or None if a scenario has only one test.

    Tests without a score widen it: they count as 0 at its lower end and as 1 at its upper end. See `total_intervals` for the method.
    """
    if not tests or min(Counter(test.scenario for test in tests).values()) < 2:
        return None
    import numpy as np

    scores = np.array([[test.low for test in tests], [test.high for test in tests]])
    lows, highs, by = total_intervals([test.scenario for test in tests], [test.conversation for test in tests], scores)
    return Interval(round(float(lows[0]), 9), round(float(highs[1]), 9), by)  # rounded, since the order of tests changes the last digits


def total_intervals(
    scenarios: Sequence[str], conversations: Sequence[str], scores: Floats
) -> tuple[Floats, Floats, Literal["conversations", "tests"]]:
    """Return the lower and upper ends of the intervals of many `total_score`s of the same tests, shape (...), and the units that they are
    over.

    `scenarios` and `conversations` label the tests; each scenario has at least two. `scores` has shape (..., tests).

    This is Wilson's (1927) interval for the mean share of full marks. Its number of tests is the number of independent and equally hard
    tests that would be as informative. This is the actual number divided by the design effect (Kish, 1965). For intervals near 0 and 1, see
    Franco, Little, Louis and Slud (2019). The design effect is the ratio between a variance of the total and the variance under such tests.
    Within one conversation, it uses the variance of tests within their scenarios. Two or more conversations with the same scenarios are
    treated as wholes, since an early error may affect the rest of a conversation. Their variance is then used, with the quantile of
    Student's t. It is capped at the variance of conversations that are right or wrong as wholes.
    """
    import numpy as np

    kinds, wholes = _labels(scenarios), _labels(conversations)
    sizes = np.bincount(kinds)
    means = _sums(scores, kinds) / sizes
    share = means.mean(axis=-1)
    number = len(sizes) ** 2 / (1 / sizes).sum()  # of tests; if scenarios differ in size, the number that would be as informative
    alike = share * (1 - share) / (number - 1)
    # Taken from their means, so that conversations with more tests do not seem to differ from the others (a ratio estimate; Cochran, 1977).
    parts = (scores - means[..., kinds]) / (sizes[kinds] * len(sizes))
    freedom = len(kinds) - len(sizes)
    normal = NormalDist().inv_cdf((1 + LEVEL) / 2) ** 2
    effect = (freedom * _ratio(_variance(parts, np.arange(len(kinds)), kinds), alike) + PRIOR) / (freedom + PRIOR)
    width = effect * normal
    groups = _scenario_sets(scenarios, conversations)
    fewest = int(np.bincount(groups).min())
    by: Literal["conversations", "tests"] = "conversations" if fewest > 1 else "tests"
    if fewest > 1 and len(groups) < len(kinds):
        between = _ratio(_variance(parts, wholes, groups), alike) * student_quantile(fewest - 1) ** 2
        width = np.maximum(np.minimum(between, normal * number / fewest), FLOOR**2 * width)
    shrunk = width / number
    centre = (share + shrunk / 2) / (1 + shrunk)
    half = np.sqrt(shrunk * (share * (1 - share) + shrunk / 4)) / (1 + shrunk)
    return len(sizes) * np.maximum(0, centre - half), len(sizes) * np.minimum(1, centre + half), by


def _labels(names: Iterable[Hashable]) -> Labels:
    """Number the names from 0 in order of first appearance."""
    import numpy as np

    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names])


def _scenario_sets(scenarios: Sequence[str], conversations: Sequence[Hashable]) -> Labels:
    """Label each conversation by its set of scenarios, with conversations in order of first appearance."""
    sets: dict[Hashable, set[str]] = defaultdict(set)
    for scenario, conversation in zip(scenarios, conversations, strict=True):
        sets[conversation].add(scenario)
    return _labels(map(frozenset, sets.values()))


def _sums(values: Floats, labels: Labels) -> Floats:
    """Sum values, shape (..., n), by their labels. The labels run from 0 to m - 1 and are all in use; the result has shape (..., m)."""
    import numpy as np

    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(labels.max() + 1))
    found: Floats = np.add.reduceat(values[..., order], starts, axis=-1)
    return found


def _variance(parts: Floats, units: Labels, groups: Labels) -> Any:
    """Return the variance, shape (...), of the sum of parts, shape (..., n), from the differences between the sums of units within their
    groups.

    `units` labels the unit of each part, `groups` the group of each unit. Each group needs two units or more.
    """
    import numpy as np

    sums, sizes = _sums(parts, units), np.bincount(groups)
    apart = (sums - (_sums(sums, groups) / sizes)[..., groups]) ** 2
    return (_sums(apart, groups) * sizes / (sizes - 1)).sum(axis=-1)


def _ratio(variance: Any, alike: Any) -> Any:
    """Return a design effect, or 1 if all scores are 0 or all are 1."""
    import numpy as np

    return np.divide(variance, alike, out=np.ones_like(alike), where=alike > 1e-12)


def student_quantile(freedom: int, level: float = LEVEL) -> float:
    """Return the two-sided quantile of Student's t at a level for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4).

    Equal to scipy.special.stdtrit. But every report needs it, and importing scipy takes about as long as a conversation of 2k.
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
    """One agent's score of a test minus another's, in [-1, 1]. `conversation` names the pair of conversations where they had the test."""

    scenario: str
    conversation: Hashable
    value: float


def by_test(differences: Sequence[Difference]) -> list[float]:
    """Return the contribution of each pair of tests to the difference of two totals."""
    sizes = Counter(each.scenario for each in differences)
    return [each.value / sizes[each.scenario] for each in differences]


def by_conversation(differences: Sequence[Difference]) -> list[float]:
    """Return the contribution of each pair of conversations to the difference of two totals."""
    return _by_conversation(differences, by_test(differences))


def _by_conversation(differences: Sequence[Difference], parts: Sequence[float]) -> list[float]:
    sums: dict[Hashable, list[float]] = defaultdict(list)
    for each, part in zip(differences, parts, strict=True):
        sums[each.conversation].append(part)
    return [fsum(group) for group in sums.values()]


def paired_permutation_p(differences: Sequence[Difference]) -> float:
    """Return the two-sided p-value of a paired permutation test that swaps the two agents' results for whole conversations.

    Scores have few values, so that totals often tie in a conversation, and the conversation then would not count. So a second statistic
    breaks ties of totals, as Streitberg and Röhmel (1990) do for ranks. It is a difference that gives more weight to scenarios where the
    agents differ less. The p-value stays exact. It is 1 if the totals are equal.
    """
    parts = _conversation_parts(differences)
    return permutation_p(parts) if parts else 1.0


def fall_p(falls: Sequence[Difference], margin: float = 0.0) -> float:
    """Return the one-sided p-value of the hypothesis that the fall is at most `margin` of full marks, by the test of
    `paired_permutation_p`. It is 1 if the fall is exactly `margin`."""
    parts = _conversation_parts([each._replace(value=each.value - margin) for each in falls])
    return permutation_p(parts, one_sided=True) if parts else 1.0


def _conversation_parts(differences: Sequence[Difference]) -> list[float]:
    """Return the contributions of conversations to a paired permutation test; none if the totals are equal."""
    parts = by_conversation(differences)
    if abs(fsum(parts)) < 1e-9:
        return []
    apart: dict[str, float] = defaultdict(float)
    for each in differences:
        apart[each.scenario] += abs(each.value)
    leanings = _by_conversation(differences, [each.value and each.value / apart[each.scenario] for each in differences])
    return [part + TIE * leaning for part, leaning in zip(parts, leanings, strict=True)]


def permutation_p(parts: Sequence[float], *, one_sided: bool = False, seed: int = 0) -> float:
    """Return the p-value of a permutation test that flips the signs of `parts`. It is 1 if all are 0. With `one_sided`, only sums that are
    as high count, not sums that are as low.

    Exact for up to fourteen parts other than 0. Beyond that it is the share of random sign patterns, including the observed one.
    scipy.stats.permutation_test gives the same result in 7 to 18 times the time, after an import of about a second. For all pairs of twenty
    agents with 33 tests each, that is 10 seconds of CPU time instead of 1.5.
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
def detectable_shift(conversations: int) -> float:
    """Return the fall, in standard deviations of the conversations, that `fall_p` shows at ALPHA with a probability of POWER.

    Differences between conversations are assumed to be normal. Their standard deviation is estimated from a pilot with the same number of
    other conversations. The estimate may be too low by chance, so the fall is larger than it would be if the true value were known. For few
    conversations, the exact test is used, since it has few p-values. For more, the test hardly differs from Student's, which is used
    instead.
    """
    import numpy as np

    random = np.random.default_rng(0)
    pilots = random.standard_normal((SAMPLES, conversations)).std(axis=1, ddof=1)
    least = _least_shown(conversations, random)
    return float(np.quantile(least[:, None] / pilots, POWER))


def _least_shown(conversations: int, random: Generator) -> Floats:
    """Return, for each sample, the least fall that the test shows, in true standard deviations; infinite if it shows none.

    A pattern of signs has a sum as high as the observed one if the mean of the conversations that it flips is not positive. So each sample
    has a least fall that is shown: fewer than ALPHA of all patterns may flip conversations whose mean is below it.
    """
    import numpy as np

    if 2**conversations > SIGNS:
        drawn = random.standard_normal((SAMPLES, conversations))
        needed = student_quantile(conversations - 1, 1 - 2 * ALPHA) * drawn.std(axis=1, ddof=1) / sqrt(conversations)
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


def difference_limits(differences: Sequence[Difference], tail: float) -> tuple[float, float] | None:
    """Return the lowest and the highest mean difference that the one-sided permutation tests of conversations do not reject.

    Each is at the level `tail`, which makes an interval at the level 1 - 2 `tail`. Its ends are -1 and 1 with too few conversations to
    reject anything. The difference is a share of full marks, the mean over the scenarios. None if all conversations differ by the same
    amount, which does not show how much others would differ.
    """
    import numpy as np

    parts = np.array(by_conversation(differences))
    shares = np.array(by_conversation([each._replace(value=1.0) for each in differences]))
    if len(parts) == 0 or np.ptp(parts / shares) < 1e-9:
        return None
    # A pattern of signs reaches the observed sum if the mean of the conversations that it flips is at most the margin. So the test stops
    # rejecting at such means, and no search is needed.
    number = min(2 ** len(parts), SIGNS)
    as_high = ceil(tail * number - 1e-9) - 1  # patterns besides the observed one that keep the lowest margin from being rejected
    if as_high < 1:
        return -1.0, 1.0
    means = np.sort(np.concatenate(list(_flip_means(parts, shares))))
    return float(means[as_high - 1]), float(means[len(means) - as_high])


def _flip_means(parts: Floats, shares: Floats) -> Iterable[Floats]:
    """Yield the means of the conversations that each pattern of signs flips, for all patterns that flip any, or for SIGNS - 1 of them."""
    import numpy as np

    if 2 ** len(parts) <= SIGNS:
        flipped = (np.arange(1, 2 ** len(parts))[:, None] >> np.arange(len(parts)) & 1).astype(float)
        yield (flipped @ parts) / (flipped @ shares)
        return
    random = np.random.default_rng(0)
    for rows in _blocks(SIGNS - 1, len(parts)):
        flipped = random.integers(0, 2, size=(rows, len(parts))).astype(float)
        flipped[flipped.sum(axis=1) == 0] = 1.0  # flipping nothing and flipping everything are as likely
        yield (flipped @ parts) / (flipped @ shares)


def holm(ps: Sequence[float]) -> list[float]:
    """Correct the p-values of simultaneous tests by Holm's method (1979), in the same order. The probability of any false positive at a
    level is at most the level."""
    corrected = [0.0] * len(ps)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=lambda index: ps[index])):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[index]))
        corrected[index] = highest
    return corrected


def least_conversations(pairs: int, *, sides: int = 2, alpha: float = ALPHA) -> int:
    """Return the fewest conversations that can make one of this many pairs of agents significant: 6 for one pair.

    A permutation test of n conversations has no p below `least_p`, and the smallest p is multiplied by the number of pairs.
    """
    return floor(log2(sides * pairs / alpha)) + 1


def least_p(conversations: int, sides: int) -> float:
    """Return the lowest p-value possible in a permutation test of this many conversations: one-sided 1 / 2**n, two-sided twice as much."""
    return min(1.0, sides * 0.5**conversations)


def more_conversations(differences: Sequence[Difference], pairs: int = 1) -> int | None:
    """Return how many more conversations would show the difference of two agents in four of five cases; None if the agents are equal.

    The level is 5% for all `pairs` together. The number comes from estimates of the difference of the totals and its variance. It uses the
    normal approximation with Guenther's correction (1981) for Student's t. The variance is the variance between conversations, but at least
    the variance of tests, since a single conversation shows nothing else.
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
    """Return the variance of the difference of two totals. Scenarios with a single test are pooled; for a single test the variance is 0."""
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
    """Return the interval of the mean difference between tests' scores with and without the part that an experiment removes, in [-1, 1].

    Over tests it is `difference_interval`. If there are two or more conversations and one has several tests, it is over conversations if
    that is wider. Their variance is the variance of their sums about the mean (a ratio estimate; Cochran, 1977), with the quantile of
    Student's t. With fewer than SEVERAL conversations, t would be uninformative. The interval then ends where the interval of the
    conversations' means ends, as if each conversation were one test.
    """
    values = [each.value for each in differences]
    low, high = difference_interval(values)
    groups: dict[Hashable, list[float]] = defaultdict(list)
    for each in differences:
        groups[each.conversation].append(each.value)
    if not 1 < len(groups) < len(values):
        return Interval(low, high, "tests" if len(groups) == 1 else "conversations")
    mean = fmean(values)
    apart = fsum(fsum(value - mean for value in group) ** 2 for group in groups.values())
    half = student_quantile(len(groups) - 1) * sqrt(apart * len(groups) / (len(groups) - 1)) / len(values)
    least, most = difference_interval([fmean(group) for group in groups.values()]) if len(groups) < SEVERAL else (-1.0, 1.0)
    return Interval(min(low, max(mean - half, least)), max(high, min(mean + half, most)), "conversations")
