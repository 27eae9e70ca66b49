"""Tests taken together: by scenario, by skill, and by how far the evidence lay from the question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf
from statistics import fmean, pstdev
from typing import Final, NamedTuple, final

from longspan.simulator.grading.grades import TestResult

__all__ = ["Group", "by_distance", "by_scenario", "by_skill", "group", "grouped", "in_order"]

DISTANCES: Final = (0, 1_000, 4_000, 16_000, 64_000, 256_000)
"""Where bins of evidence distances begin, in tokens."""


@final
class Group(NamedTuple):
    """Some tests: the mean of their scores, where those without one count as 0 (`low`) and as 1 (`high`), and their
    population standard deviation, None where one has no score."""

    low: float
    high: float
    std: float | None
    chance: float
    tests: int


Names = Callable[[TestResult], Sequence[str]]
"""The groups that a test belongs to."""


def by_scenario(test: TestResult) -> Sequence[str]:
    """Its scenario."""
    return [test.scenario]


def by_skill(test: TestResult) -> Sequence[str]:
    """Each of its skills."""
    return test.skills


def by_distance(test: TestResult) -> Sequence[str]:
    """The bin of its mean evidence distance; none where no question was asked."""
    if not test.evidence:
        return []
    distance = fmean(each.tokens for each in test.evidence)
    return [_label(max(number for number, start in enumerate(DISTANCES) if distance >= start or number == 0))]


def group(tests: Sequence[TestResult]) -> Group:
    """One group of one test or more."""
    scores = [test.score for test in tests if test.score is not None]
    return Group(
        low=fmean(test.lowest for test in tests),
        high=fmean(test.highest for test in tests),
        std=pstdev(scores) if len(scores) == len(tests) else None,
        chance=fmean(test.chance for test in tests),
        tests=len(tests),
    )


def grouped(tests: Iterable[TestResult], belongs: Names) -> dict[str, Group]:
    """The groups of some tests, in order."""
    found: dict[str, list[TestResult]] = {}
    for test in tests:
        for name in belongs(test):
            found.setdefault(name, []).append(test)
    return {name: group(found[name]) for name in in_order(found)}


def in_order(names: Iterable[str]) -> list[str]:
    """Groups' names: distances as they grow, all else by the alphabet."""
    order = [_label(number) for number in range(len(DISTANCES))]
    return sorted(names, key=lambda name: (order.index(name) if name in order else -1, name))


def _label(number: int) -> str:
    start, end = DISTANCES[number], DISTANCES[number + 1] if number + 1 < len(DISTANCES) else inf
    return f"from {start:,} tokens" if end == inf else f"{start:,} to {end:,} tokens"
