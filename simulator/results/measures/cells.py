"""Each agent's scores at each span, over all its runs there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import NamedTuple, TypeVar, final

from longspan.simulator.results.analysis.distances import Distances, Range, range_of
from longspan.simulator.results.analysis.statistics import Interval, score_spread, total_interval, total_score
from longspan.simulator.results.analysis.units import observe_tests
from longspan.simulator.results.graded_runs import Column, GradedRun
from longspan.simulator.results.result import Status, TestResult
from longspan.simulator.subject.ledger import total_cost

__all__ = ["Cell", "RunTest", "cells_of", "counted_tests", "group_by"]

Key = TypeVar("Key")
Value = TypeVar("Value")


@final
@dataclass(frozen=True, slots=True)
class Cell:
    """All runs of an agent at a span.

    `score` and `spread` are None if a test has no score; `bounds` are the lowest and highest possible score. `chance` is the score of
    guessing. `cost_usd` is the mean dollars per run, None if unknown for any. `statuses` counts the tests by status. `certified` and
    `at_distance` are shares of the tests; `certified` is None if no test has a span to keep. `evidence` are the evidence distances of its
    questions. `spans` is the range of the tests' spans in tokens, as measured with this agent's replies. `folders` lists its runs' seeds
    and folders.
    """

    runs: int
    tests: int
    statuses: Mapping[Status, int]
    score: float | None
    bounds: tuple[float, float]
    spread: float | None
    interval: Interval | None
    maximum: int
    chance: float
    certified: float | None
    at_distance: float
    evidence: Distances
    spans: Range | None
    cost_usd: float | None
    folders: Sequence[tuple[int, Path]]

    @property
    def share(self) -> tuple[float, float]:
        """The bounds of the score as shares of the maximum."""
        return self.bounds[0] / self.maximum, self.bounds[1] / self.maximum


@final
class RunTest(NamedTuple):
    """A test of a run."""

    run: GradedRun
    test: TestResult


def cells_of(runs: Sequence[GradedRun]) -> dict[tuple[str, Column], Cell]:
    """Return a cell for each agent in each column where it has runs."""
    by_cell = group_by(counted_tests(runs), lambda each: [(each.run.agent, each.run.column)])
    groups = group_by(runs, lambda run: [(run.agent, run.column)])
    return {key: _cell(groups[key], group) for key, group in by_cell.items()}


def counted_tests(runs: Sequence[GradedRun]) -> list[RunTest]:
    """Return the tests that count."""
    return [RunTest(run, test) for run in runs for test in run.result.tests if test.counts]


def _cell(runs: Sequence[GradedRun], tests: Sequence[RunTest]) -> Cell:
    scenarios = group_by(tests, lambda each: [each.test.scenario])
    low, high = ({name: [value(each) for each in group] for name, group in scenarios.items()} for value in (_low, _high))
    whole = all(each.test.score is not None for each in tests)
    costs = [run.cost_usd for run in runs]
    statuses: dict[Status, int] = defaultdict(int)
    for each in tests:
        statuses[each.test.status] += 1
    return Cell(
        runs=len(runs),
        tests=len(tests),
        statuses=dict(statuses),
        score=total_score(low) if whole else None,
        bounds=(total_score(low), total_score(high)),
        spread=score_spread(low) if whole else None,
        interval=total_interval(observe_tests((run.manifest, [each.test for each in tests if each.run is run]) for run in runs)),
        maximum=len(scenarios),
        chance=total_score({name: [each.test.chance for each in group] for name, group in scenarios.items()}),
        certified=fmean(kept) if (kept := [each.test.certified for each in tests if each.test.certified is not None]) else None,
        at_distance=fmean(each.test.at_distance for each in tests),
        evidence=Distances.of([each.test for each in tests], runs[0].column.span),
        spans=range_of(each.test.span_used for each in tests if each.test.span_used and each.test.exempt != "alone"),
        cost_usd=None if (whole_cost := total_cost(costs)) is None else whole_cost / len(costs),
        folders=sorted((run.manifest.seed, run.folder.path) for run in runs),
    )


def _low(each: RunTest) -> float:
    return each.test.lowest


def _high(each: RunTest) -> float:
    return each.test.highest


def group_by(values: Iterable[Value], keys: Callable[[Value], Sequence[Key]]) -> dict[Key, list[Value]]:
    """Group values by key. A value with several keys is in several groups."""
    groups: dict[Key, list[Value]] = {}
    for value in values:
        for key in keys(value):
            groups.setdefault(key, []).append(value)
    return groups
