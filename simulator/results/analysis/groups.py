"""Groups of tests by scenario and by skill, and of graded questions by evidence distance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf
from statistics import fmean, pstdev
from typing import Final, NamedTuple, TypeVar, final

from longspan.simulator.results.analysis.distances import Point
from longspan.simulator.results.result import TestResult

__all__ = ["Group", "by_distance", "by_scenario", "by_skill", "distance_bin", "group_tests", "in_order", "make_group"]

DISTANCES: Final = (0, 1_000, 4_000, 16_000, 64_000, 256_000)
"""The lower limits of the bins of evidence distances, in tokens."""


@final
class Group(NamedTuple):
    """A group of tests or graded questions.

    In its mean score, tests without a score count as 0 (`low`) or as 1 (`high`). The population standard deviation is None if any has no
    score.
    """

    low: float
    high: float
    std: float | None
    chance: float
    tests: int


Scored = TypeVar("Scored", TestResult, Point)


def by_scenario(test: TestResult) -> Sequence[str]:
    """Return the test's scenario."""
    return [test.scenario]


def by_skill(test: TestResult) -> Sequence[str]:
    """Return the test's skills."""
    return test.skills


def by_distance(point: Point) -> Sequence[str]:
    """Return the bin of a graded question's evidence distance."""
    return [distance_bin(point.distance)]


def distance_bin(tokens: int) -> str:
    """Return the name of the bin of an evidence distance in tokens."""
    return _label(max(number for number, start in enumerate(DISTANCES) if tokens >= start or number == 0))


def make_group(tests: Sequence[Scored]) -> Group:
    """Make a group of one or more tests or graded questions."""
    scores = [test.score for test in tests if test.score is not None]
    return Group(
        low=fmean(test.lowest for test in tests),
        high=fmean(test.highest for test in tests),
        std=pstdev(scores) if len(scores) == len(tests) else None,
        chance=fmean(test.chance for test in tests),
        tests=len(tests),
    )


def group_tests(tests: Iterable[Scored], belongs: Callable[[Scored], Sequence[str]]) -> dict[str, Group]:
    """Return groups of tests or graded questions, by the names that `belongs` returns, in order."""
    tests_by_name: dict[str, list[Scored]] = {}
    for test in tests:
        for name in belongs(test):
            tests_by_name.setdefault(name, []).append(test)
    return {name: make_group(tests_by_name[name]) for name in in_order(tests_by_name)}


def in_order(names: Iterable[str]) -> list[str]:
    """Sort the names of groups: distances by size, others alphabetically."""
    order = [_label(number) for number in range(len(DISTANCES))]
    return sorted(names, key=lambda name: (order.index(name) if name in order else -1, name))


def _label(number: int) -> str:
    start, end = DISTANCES[number], DISTANCES[number + 1] if number + 1 < len(DISTANCES) else inf
    return f"from {start:,} tokens" if end == inf else f"{start:,} to {end:,} tokens"
