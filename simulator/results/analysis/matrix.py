"""Tests by agents: each agent's score in each test of the same conversations."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple, final

from longspan.simulator.results.analysis.comparable import test_key
from longspan.simulator.results.graded_runs import Column, GradedRun
from longspan.simulator.results.result import TestResult

__all__ = ["ScoreBounds", "TestMatrix", "natural_sort_key", "score_bounds", "test_matrices"]


@final
class ScoreBounds(NamedTuple):
    """An agent's score in a test: the mean over its `runs`, where a run without a score counts as 0 (`low`) or as 1 (`high`)."""

    low: float
    high: float
    runs: Sequence[Path]


@final
class TestMatrix(NamedTuple):
    """The tests of a column and a seed: each agent's scores, by scenario, test and agent. `note` distinguishes the matrix from others."""

    column: Column
    seed: int
    note: str
    scenarios: Mapping[str, Mapping[str, Mapping[str, ScoreBounds]]]

    @property
    def tests(self) -> int:
        return sum(map(len, self.scenarios.values()))

    @property
    def agents(self) -> set[str]:
        return {agent for tests in self.scenarios.values() for scores in tests.values() for agent in scores}


Bounds = Callable[[TestResult], tuple[float, float] | None]
"""The lowest and the highest value of a test, None if it has none."""


def score_bounds(test: TestResult) -> tuple[float, float]:
    """Return the lowest and the highest possible score of a test."""
    return test.lowest, test.highest


def test_matrices(runs: Sequence[GradedRun], bounds: Bounds) -> list[TestMatrix]:
    """Return a matrix for each column and seed, in order. Tests with other definitions, or from another version, have separate matrices."""
    groups: dict[Hashable, list[GradedRun]] = {}
    for run in sorted(runs, key=lambda run: (not run.column.isolated, run.column.span, run.manifest.seed)):
        groups.setdefault((run.column, test_key(run, "")), []).append(run)
    places = [(group[0].column, group[0].manifest.seed) for group in groups.values()]
    return [
        TestMatrix(*place, _origin(group[0]) if places.count(place) > 1 else "", _scenarios(group, bounds))
        for place, group in zip(places, groups.values(), strict=True)
    ]


def natural_sort_key(text: str) -> list[tuple[int, str]]:
    """Return a key that sorts names by the numbers in them: `seed2` before `seed10`."""
    return [(int(part), "") if part.isascii() and part.isdigit() else (-1, part) for part in re.split(r"([0-9]{1,18})", text)]


def _origin(run: GradedRun) -> str:
    definitions = run.manifest.definitions_sha256
    made = f"definitions {definitions[:12]}" if definitions else "generated"
    return f"{made} by longspan {run.manifest.versions.get('longspan', 'unknown')}"


def _scenarios(runs: Sequence[GradedRun], bounds: Bounds) -> dict[str, dict[str, dict[str, ScoreBounds]]]:
    found: dict[str, dict[str, dict[str, list[tuple[Path, tuple[float, float]]]]]] = {}
    for run in runs:
        for test in run.result.tests:
            if (value := bounds(test)) is None:
                continue
            found.setdefault(test.scenario, {}).setdefault(test.id, {}).setdefault(run.agent, []).append((run.folder.path, value))
    return {
        name: {
            id: {agent: _mean_bounds(each) for agent, each in found[name][id].items()} for id in sorted(found[name], key=natural_sort_key)
        }
        for name in sorted(found)
    }


def _mean_bounds(played: Sequence[tuple[Path, tuple[float, float]]]) -> ScoreBounds:
    return ScoreBounds(fmean(low for _, (low, _) in played), fmean(high for _, (_, high) in played), [path for path, _ in played])
