"""Intervals of many totals of the same tests at once: for simulations, and computed otherwise than one is in the product."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from longspan.simulator.analysis.statistics import FLOOR, LEVEL, PRIOR, student

__all__ = ["intervals"]

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


def intervals(
    scenarios: Sequence[str], conversations: Sequence[str], scores: Floats
) -> tuple[Floats, Floats, Literal["conversations", "tests"]]:
    """Return the lower and upper ends of the intervals of many `total`s of the same tests, shape (...), and the units that they are over.

    `scenarios` and `conversations` label the tests; each scenario has at least two. `scores` has shape (..., tests).
    """
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
        between = _ratio(_variance(parts, wholes, groups), alike) * student(fewest - 1) ** 2
        width = np.maximum(np.minimum(between, normal * number / fewest), FLOOR**2 * width)
    shrunk = width / number
    centre = (share + shrunk / 2) / (1 + shrunk)
    half = np.sqrt(shrunk * (share * (1 - share) + shrunk / 4)) / (1 + shrunk)
    return len(sizes) * np.maximum(0, centre - half), len(sizes) * np.minimum(1, centre + half), by


def _labels(names: Iterable[Hashable]) -> Labels:
    """Number the names from 0 in order of first appearance."""
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
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(labels.max() + 1))
    found: Floats = np.add.reduceat(values[..., order], starts, axis=-1)
    return found


def _variance(parts: Floats, units: Labels, groups: Labels) -> Any:
    """Return the variance, shape (...), of the sum of parts, shape (..., n), from the differences between the sums of units within their
    groups.

    `units` labels the unit of each part, `groups` the group of each unit. Each group needs two units or more.
    """
    sums, sizes = _sums(parts, units), np.bincount(groups)
    apart = (sums - (_sums(sums, groups) / sizes)[..., groups]) ** 2
    return (_sums(apart, groups) * sizes / (sizes - 1)).sum(axis=-1)


def _ratio(variance: Any, alike: Any) -> Any:
    """Return a design effect, or 1 if all scores are 0 or all are 1."""
    return np.divide(variance, alike, out=np.ones_like(alike), where=alike > 1e-12)
