"""Groups of tests by scenario, by skill and by evidence distance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf
from statistics import fmean, pstdev
from typing import Final, NamedTuple, final

from longspan.simulator.grading.grades import TestResult

__all__ = ["Group", "by_distance", "by_scenario", "by_skill", "group", "grouped", "in_order"]

DISTANCES: Final = (0, 1_000, 4_000, 16_000, 64_000, 256_000)
"""The lower limits of the bins of evidence distances, in tokens."""


@final
class Group(NamedTuple):
    """A group of tests: the mean score, where tests without a score count as 0 (`low`) or as 1 (`high`), and the population standard
    deviation, which is None if a test has no score."""

    low: float
    high: float
    std: float | None
    chance: float
    tests: int


Names = Callable[[TestResult], Sequence[str]]
"""Returns the groups that a test belongs to."""


def by_scenario(test: TestResult) -> Sequence[str]:
    """Return the test's scenario."""
    return [test.scenario]


def by_skill(test: TestResult) -> Sequence[str]:
    """Return the test's skills."""
    return test.skills


def by_distance(test: TestResult) -> Sequence[str]:
    """Return the bin of the test's mean evidence distance, or nothing if no question was asked."""
    if not test.evidence:
        return []
    distance = fmean(evidence.tokens for evidence in test.evidence)
    return [_label(max(number for number, start in enumerate(DISTANCES) if distance >= start or number == 0))]


def group(tests: Sequence[TestResult]) -> Group:
    """Make a group of one or more tests."""
    scores = [test.score for test in tests if test.score is not None]
    return Group(
        low=fmean(test.lowest for test in tests),
        high=fmean(test.highest for test in tests),
        std=pstdev(scores) if len(scores) == len(tests) else None,
        chance=fmean(test.chance for test in tests),
        tests=len(tests),
    )


def grouped(tests: Iterable[TestResult], belongs: Names) -> dict[str, Group]:
    """Return the groups of tests, in order."""
    tests_by_name: dict[str, list[TestResult]] = {}
    for test in tests:
        for name in belongs(test):
            tests_by_name.setdefault(name, []).append(test)
    return {name: group(tests_by_name[name]) for name in in_order(tests_by_name)}


def in_order(names: Iterable[str]) -> list[str]:
    """Sort the names of groups: distances by size, others alphabetically."""
    order = [_label(number) for number in range(len(DISTANCES))]
    return sorted(names, key=lambda name: (order.index(name) if name in order else -1, name))


def _label(number: int) -> str:
    start, end = DISTANCES[number], DISTANCES[number + 1] if number + 1 < len(DISTANCES) else inf
    return f"from {start:,} tokens" if end == inf else f"{start:,} to {end:,} tokens"
