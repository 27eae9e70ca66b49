"""Interference: scores by evidence distance, by the number of similar facts in between, and by the number of changes of the fact in
question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot
from statistics import fmean
from typing import Final, Literal, NamedTuple, final, get_args

from longspan.simulator.base.shares import format_interval, format_percent
from longspan.simulator.results.analysis.distance_curve import CurveEstimate, DistanceCurve, distance_curve
from longspan.simulator.results.analysis.distances import Distances
from longspan.simulator.results.analysis.statistics import Interval, total_interval, total_score
from longspan.simulator.results.analysis.units import observe_questions, observe_tests
from longspan.simulator.results.graded_runs import GradedRun
from longspan.simulator.results.result import Result, TestResult
from longspan.simulator.suite.manifest import Manifest

__all__ = [
    "CAUSES",
    "Cause",
    "Effect",
    "Interference",
    "Level",
    "PlantedGroup",
    "describe_planted",
    "group_by_planted",
    "measure_interference",
]

Cause = Literal["similar", "updates"]
"""The names of the numbers that scenarios plant (`Scenario.numbers`): similar facts, and changes of the fact in question."""

CAUSES: Final[tuple[Cause, ...]] = get_args(Cause)
NAMES: Final[Mapping[Cause, tuple[str, str]]] = {"similar": ("similar fact", "similar facts"), "updates": ("update", "updates")}
NAMED: Final = 4
"""The number of scenarios that a sentence names; it counts the others."""


@final
class Level(NamedTuple):
    """Tests with the same number of similar facts or of updates.

    `score` is the mean over scenarios, where tests without a score count as 0. Its interval is None if a scenario has only one test.
    """

    number: float
    score: float
    interval: Interval | None
    chance: float
    tests: int


@final
@dataclass(frozen=True, slots=True)
class Effect:
    """An agent's scores by a planted number, in the `scenarios` that were all played at the same several numbers.

    `left_out`: scenarios that were played at several other numbers. `fall`: the score at the smallest number minus the score at the
    largest. If an interval is unknown, both of its ends equal the value.
    """

    cause: Cause
    scenarios: Sequence[str]
    left_out: Sequence[str]
    levels: Sequence[Level]
    fall: CurveEstimate

    @property
    def sentence(self) -> str:
        """The effect in words, with 95% intervals in brackets."""
        (first, last), (one, many) = (self.levels[0], self.levels[-1]), NAMES[self.cause]
        scores = " and ".join(
            f"{format_percent(level.score)}{format_interval(level.interval)} with {level.number:g} {one if level.number == 1 else many}"
            for level in (first, last)
        )
        change = "a fall" if self.fall.value >= 0.005 else "a rise" if self.fall.value <= -0.005 else "no fall"
        value, low, high = self.fall if self.fall.value > -0.005 else (-self.fall.value, -self.fall.high, -self.fall.low)
        size = f" of {format_percent(value)}" if change != "no fall" else ""
        left_out = f"; {_name_scenarios(self.left_out)} left out, which had other numbers" if self.left_out else ""
        return (
            f"{scores}, {change}{size}{format_interval((low, high), sign=True) if low < high else ''} "
            f"({_name_scenarios(self.scenarios)}{left_out})"
        )


@final
@dataclass(frozen=True, slots=True)
class Interference:
    """Disturbances of an agent's memory.

    These are the curve of its scores by distance, None with too few questions, and the effects of planted numbers that differ between its
    tests.
    """

    distance: DistanceCurve | None
    effects: Mapping[Cause, Effect]
    planted: Sequence[PlantedGroup]


@final
class PlantedGroup(NamedTuple):
    """The tests of a scenario with the same numbers."""

    scenario: str
    numbers: Mapping[str, float]
    level: Level
    distances: Distances


@final
class _PlantedTest(NamedTuple):
    """A test of a run with this manifest."""

    manifest: Manifest
    test: TestResult


def measure_interference(runs: Sequence[GradedRun]) -> dict[str, Interference]:
    """Return the disturbances of each agent's memory, by its name, over all its runs. The runs' parameters usually differ."""
    tests: dict[str, list[_PlantedTest]] = {}
    for run in runs:
        tests.setdefault(run.agent, []).extend(_PlantedTest(run.manifest, test) for test in run.result.tests if test.counts)
    return {agent: _interference([run for run in runs if run.agent == agent], tests[agent]) for agent in sorted(tests)}


def group_by_planted(manifest: Manifest, result: Result) -> list[PlantedGroup]:
    """Return a run's tests grouped by scenario and planted numbers."""
    return _group_planted([_PlantedTest(manifest, test) for test in result.tests if test.counts], result.span)


def describe_planted(numbers: Mapping[str, float]) -> str:
    """Describe the numbers planted in a test, such as "8 similar facts, 2 updates"."""
    parts = [f"{numbers[name]:g} {NAMES[name][numbers[name] != 1]}" for name in CAUSES if name in numbers]
    return ", ".join(parts)


def _interference(runs: Sequence[GradedRun], tests: Sequence[_PlantedTest]) -> Interference:
    asked = observe_questions((run.manifest, [test for test in run.result.tests if test.counts]) for run in runs)
    effects = {cause: effect for cause in CAUSES if (effect := _effect(cause, tests)) is not None}
    return Interference(distance_curve(asked), effects, _group_planted(tests, runs[0].column.span))


def _effect(cause: Cause, tests: Sequence[_PlantedTest]) -> Effect | None:
    """Return the effect of a number; None if no scenario was played at several numbers."""
    by_scenario: dict[str, dict[float, list[_PlantedTest]]] = {}
    for each in tests:
        if cause in each.test.numbers:
            by_scenario.setdefault(each.test.scenario, {}).setdefault(each.test.numbers[cause], []).append(each)
    sets = {name: frozenset(levels) for name, levels in sorted(by_scenario.items())}
    several = Counter(numbers for numbers in sets.values() if len(numbers) > 1)
    if not several:
        return None
    chosen = max(several, key=lambda numbers: (several[numbers], len(numbers), sorted(numbers)))
    names = [name for name, numbers in sets.items() if numbers == chosen]
    levels = [_level(number, [each for name in names for each in by_scenario[name][number]]) for number in sorted(chosen)]
    left_out = [name for name, numbers in sets.items() if numbers in several and numbers != chosen]
    return Effect(cause, names, left_out, levels, _fall(levels[0], levels[-1]))


def _level(number: float, tests: Sequence[_PlantedTest]) -> Level:
    scores: dict[str, list[float]] = {}
    chances: dict[str, list[float]] = {}
    for each in tests:
        scores.setdefault(each.test.scenario, []).append(each.test.lowest)
        chances.setdefault(each.test.scenario, []).append(each.test.chance)
    by_run: dict[int, tuple[Manifest, list[TestResult]]] = {}
    for each in tests:
        by_run.setdefault(id(each.manifest), (each.manifest, []))[1].append(each.test)
    found = total_interval(observe_tests(by_run.values()))
    size = len(scores)
    within = found and found._replace(low=found.low / size, high=found.high / size)
    return Level(number, total_score(scores) / size, within, total_score(chances) / size, len(tests))


def _fall(first: Level, last: Level) -> CurveEstimate:
    """Return the difference between two levels, with an interval made from theirs as if they were independent (Newcombe, 1998).

    Runs of the same seed are not independent, because they share their tests. The interval is then wider than it need be.
    """
    value = first.score - last.score
    if first.interval is None or last.interval is None:
        return CurveEstimate(value, value, value)
    low = value - hypot(first.score - first.interval.low, last.interval.high - last.score)
    high = value + hypot(first.interval.high - first.score, last.score - last.interval.low)
    return CurveEstimate(value, low, high)


def _group_planted(tests: Sequence[_PlantedTest], span: int) -> list[PlantedGroup]:
    groups: dict[tuple[str, tuple[tuple[str, float], ...]], list[_PlantedTest]] = {}
    for each in tests:
        numbers = tuple((name, each.test.numbers[name]) for name in CAUSES if name in each.test.numbers)
        if numbers:
            groups.setdefault((each.test.scenario, numbers), []).append(each)
    return [
        PlantedGroup(
            scenario, dict(numbers), _level(fmean(dict(numbers).values()), group), Distances.of([each.test for each in group], span)
        )
        for (scenario, numbers), group in sorted(groups.items())
    ]


def _name_scenarios(scenarios: Sequence[str]) -> str:
    return ", ".join([*scenarios[:NAMED], *([f"{len(scenarios) - NAMED} more"] if len(scenarios) > NAMED else [])])
