"""Compares runs: agents by span, in pairs, by scenario, by skill and by evidence distance."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import fsum
from pathlib import Path
from statistics import fmean
from typing import Final, NamedTuple, TypeVar, final

from longspan.simulator.analysis.changes import data_of
from longspan.simulator.analysis.comparable import check_comparable, comparable, differences, other_data, pooled
from longspan.simulator.analysis.distance_curve import DistanceCurve, distance_curve
from longspan.simulator.analysis.distances import Distances, Point, Range, narrow, range_of
from longspan.simulator.analysis.effects import Pooled, pooled_effects
from longspan.simulator.analysis.graded_runs import Column, Graded, Unusable, load, without_ungraded
from longspan.simulator.analysis.groups import Group, by_distance, by_scenario, by_skill, group, grouped, in_order
from longspan.simulator.analysis.matrix import TestMatrix, test_matrices
from longspan.simulator.analysis.memory_losses import Lost
from longspan.simulator.analysis.pairing import Paired, paired
from longspan.simulator.analysis.rows import names
from longspan.simulator.analysis.statistics import (
    Interval,
    by_test,
    holm,
    interval,
    least_conversations,
    more_conversations,
    paired_p,
    permutation_p,
    spread,
    total,
)
from longspan.simulator.analysis.units import observed, placed, repeated
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.tables import Table
from longspan.simulator.grading.grades import Status, TestResult, tables_of
from longspan.simulator.subject.ledger import total_cost
from longspan.simulator.suite.plugins import installed_scenarios

__all__ = ["Cell", "Comparison", "Pair", "cells_of", "compare", "load_comparison", "load_comparisons", "load_finished"]

UNCOUNTED: Final = "none of its tests counts toward a score"

Key = TypeVar("Key")
Value = TypeVar("Value")


@final
@dataclass(frozen=True, slots=True)
class Cell:
    """All runs of an agent at a span.

    `score` and `spread` are None if a test has no score; `bounds` are the lowest and highest possible score. `chance` is the score
    of guessing. `cost_usd` is the mean dollars per run, None if unknown for any. `statuses` counts the tests by status.
    `certified` and `at_distance` are shares of the tests; the former is None if none has a span to keep. `evidence` are the evidence
    distances of its questions, `spans` what the tests' spans came to with this agent's own replies, in tokens. `lost`: where its
    memory was lost. `memory`: figures of its memory by name, such as `evidence_recall@5`, means over runs. `folders`: its runs' seeds
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
    lost: Lost
    memory: Mapping[str, float]
    folders: Sequence[tuple[int, Path]]

    @property
    def share(self) -> tuple[float, float]:
        """The bounds as shares of full marks."""
        return self.bounds[0] / self.maximum, self.bounds[1] / self.maximum


@final
class Pair(NamedTuple):
    """Two agents on the same tests of a column, the one with the higher score first. Tests without a score count as 0.

    `conversations` is how many both have had that are independent; `recorded`: some tell recorded histories. `p` is the p-value of a
    permutation test of conversations, `corrected` the one corrected for all pairs. Where conversations are too few for any difference to
    be significant, `p_of_tests` is that of a permutation test of the tests, which says nothing about other conversations; it is None
    elsewhere. `more` is how many more conversations would show a significant difference, or None if no number would.
    """

    column: Column
    better: str
    other: str
    difference: float
    conversations: int
    tests: int
    unscored: int
    p: float
    corrected: float
    p_of_tests: float | None
    more: int | None
    recorded: bool = False


@final
@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of agents by their runs. `agents` are ranked by their lower bounds, best first. `own` are the scenarios' own tables.

    `evidence`: the evidence distances of each scenario's questions, of all agents. `distances` groups graded questions, and `curves`
    has each agent's score by distance, over all spans; agents with too few questions have none. `narrow` names the scenarios that
    are seen only at some distances. `effects`: what experiments show. `matrices`: what each agent scored in each test. `data`: what the
    tests are made of. `measured`: what scores measure, with remarks in brackets.
    """

    suite: str
    runs: int
    agents: list[str]
    columns: list[Column]
    cells: dict[tuple[str, Column], Cell]
    pairs: list[Pair]
    scenarios: dict[Column, dict[str, dict[str, Group]]]
    skills: dict[Column, dict[str, dict[str, Group]]]
    evidence: dict[Column, dict[str, Distances]]
    distances: dict[str, dict[str, Group]]
    curves: dict[str, DistanceCurve]
    narrow: str | None
    matrices: list[TestMatrix]
    own: list[Table]
    effects: list[Pooled]
    data: list[str]
    measured: str
    warnings: list[str]
    unusable: list[Unusable]

    @property
    def mixed(self) -> bool:
        """Whether scores have different maxima, so that only their shares of them can be compared."""
        return len({cell.maximum for cell in self.cells.values()}) > 1

    @property
    def priced(self) -> bool:
        """Whether any run is known to have cost something."""
        return any(cell.cost_usd for cell in self.cells.values())


@final
class _Played(NamedTuple):
    """A test of a run."""

    run: Graded
    test: TestResult


def load_comparison(paths: Sequence[Path]) -> Comparison:
    """Compare all runs in `paths`, each a run's folder or a folder of runs. Raises InputError."""
    return compare(*_loaded(paths))


def load_comparisons(paths: Sequence[Path]) -> dict[str, Comparison]:
    """Compare the runs in `paths` with those of the same tests: a comparison for each group (see `comparable`), by its name.

    Runs that cannot be used are in the first. Raises InputError.
    """
    runs, unusable = _loaded(paths)
    compared = {name: compare(group, [] if number else unusable) for number, (name, group) in enumerate(comparable(runs).items())}
    first = next(iter(compared.values()))
    return compared | {next(iter(compared)): replace(first, warnings=[*other_data(runs), *first.warnings])}


def _loaded(paths: Sequence[Path]) -> tuple[list[Graded], list[Unusable]]:
    """Load runs and those that cannot be used, such as one of which no test counts: it has no score. Raises InputError."""
    runs, unusable = load(paths)
    runs, ungraded = without_ungraded(runs)
    unusable += ungraded
    counted = [run for run in runs if run.result.max_score]
    unusable += [Unusable(run.folder.path, f"{run.folder.path}: {UNCOUNTED}") for run in runs if not run.result.max_score]
    if not counted:
        raise InputError(f"no run can be compared: {unusable[-1].why}")
    return counted, unusable


def load_finished(paths: Sequence[Path]) -> tuple[list[Graded], list[Unusable]]:
    """Load runs that were played to their end. What an agent has not been asked counts neither for nor against it. Raises InputError."""
    runs, unusable = _loaded(paths)
    left = [run for run in runs if run.result.interrupted]
    unusable += [Unusable(run.folder.path, f"{run.folder.path}: not finished; `longspan resume` continues it") for run in left]
    if len(left) == len(runs):
        raise InputError(f"no run is finished: {unusable[-1].why}")
    return [run for run in runs if run not in left], unusable


def compare(runs: Sequence[Graded], unusable: Sequence[Unusable] = ()) -> Comparison:
    """Compare runs. Raises InputError if they do not play the same tests (see `check_comparable`), or if no test is graded."""
    check_comparable(runs)
    runs, ungraded = without_ungraded(runs)
    tests = _tests(runs)
    cells = cells_of(runs)
    columns = sorted({column for _, column in cells}, key=lambda column: (not column.isolated, column.span))
    agents = _ranked(cells)
    asked = {agent: placed((run.manifest, run.result.tests) for run in runs if run.agent == agent) for agent in agents}
    curves = {agent: distance_curve(found) for agent, found in asked.items()}
    return Comparison(
        suite=runs[0].manifest.suite.name,
        runs=len(runs),
        agents=agents,
        columns=columns,
        cells=cells,
        pairs=_pairs(runs, agents, columns),
        scenarios={column: _grouped(tests, agents, by_scenario, column) for column in columns},
        skills={column: _grouped(tests, agents, by_skill, column) for column in columns},
        evidence={
            column: {name: Distances.of([each.test for each in group], column.span) for name, group in sorted(by_name.items())}
            for column in columns
            for by_name in [_by((each for each in tests if each.run.column == column), lambda each: [each.test.scenario])]
        },
        distances=_by_distance(asked),
        curves={agent: curve for agent, curve in curves.items() if curve is not None},
        own=_own(runs),
        effects=pooled_effects(runs),
        matrices=test_matrices(runs),
        narrow=narrow([point for found in asked.values() for point in found]),
        data=list(dict.fromkeys(line for run in runs for line in data_of(run.manifest))),
        measured="; ".join(dict.fromkeys(run.result.measured for run in runs)),
        warnings=[*differences(runs), *pooled(runs), *repeated(runs)],
        unusable=[*unusable, *ungraded],
    )


def cells_of(runs: Sequence[Graded]) -> dict[tuple[str, Column], Cell]:
    """Return what each agent scored in each column."""
    by_cell = _by(_tests(runs), lambda each: [(each.run.agent, each.run.column)])
    groups = _by(runs, lambda run: [(run.agent, run.column)])
    return {key: _cell(groups[key], group) for key, group in by_cell.items()}


def _tests(runs: Sequence[Graded]) -> list[_Played]:
    return [_Played(run, test) for run in runs for test in run.result.tests if test.counts]


def _own(runs: Sequence[Graded]) -> list[Table]:
    """Return the tables of the installed scenarios. A run is labelled with its agent if that has only one run, else with its name."""
    agents, called = Counter(run.agent for run in runs), names(runs)
    labels = [run.agent if agents[run.agent] == 1 else called[run.folder.path] for run in runs]
    scenarios = {name: each for run in reversed(runs) for name, each in installed_scenarios(run.manifest.suite.scenarios).items()}
    return [
        table
        for name, scenario in sorted(scenarios.items())
        for table in tables_of(
            scenario,
            {label: [test for test in run.result.tests if test.scenario == name] for label, run in zip(labels, runs, strict=True)},
        )
    ]


def _cell(runs: Sequence[Graded], tests: Sequence[_Played]) -> Cell:
    scenarios = _by(tests, lambda each: [each.test.scenario])
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
        score=total(low) if whole else None,
        bounds=(total(low), total(high)),
        spread=spread(low) if whole else None,
        interval=interval(observed((run.manifest, [each.test for each in tests if each.run is run]) for run in runs)),
        maximum=len(scenarios),
        chance=total({name: [each.test.chance for each in group] for name, group in scenarios.items()}),
        certified=fmean(kept) if (kept := [each.test.certified for each in tests if each.test.certified is not None]) else None,
        at_distance=fmean(each.test.at_distance for each in tests),
        evidence=Distances.of([each.test for each in tests], runs[0].column.span),
        spans=range_of(each.test.span_used for each in tests if each.test.span_used and each.test.exempt != "alone"),
        cost_usd=None if (whole_cost := total_cost(costs)) is None else whole_cost / len(costs),
        lost=Lost.of([each.test for each in tests], placed((run.manifest, run.result.tests) for run in runs)),
        memory=_of_memory([run.result.metrics for run in runs]),
        folders=sorted((run.manifest.seed, run.folder.path) for run in runs),
    )


def _of_memory(metrics: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the means over runs of the figures that belong to no scenario."""
    names = dict.fromkeys(name for each in metrics for name in each if ": " not in name)
    return {name: fmean(each[name] for each in metrics if name in each) for name in names}


def _ranked(cells: Mapping[tuple[str, Column], Cell]) -> list[str]:
    """Rank the agents, best first, by their mean share of the maximum score over the columns that all agents have, or else over their
    own columns."""
    columns = _by(cells, lambda key: [key[0]])
    shared = set.intersection(*({column for _, column in keys} for keys in columns.values()))

    def share(agent: str) -> float:
        counted = [cells[key] for key in columns[agent] if not shared or key[1] in shared]
        return fmean(cell.bounds[0] / cell.maximum for cell in counted)

    return sorted(columns, key=lambda agent: (-share(agent), agent))


# ---- pairs


def _pairs(runs: Sequence[Graded], agents: Sequence[str], columns: Sequence[Column]) -> list[Pair]:
    """Compare each pair of agents in each column where they have tests in common."""
    by_cell = _by(runs, lambda run: [(run.agent, run.column)])
    shared = [
        (column, one, other, paired(by_cell[one, column], by_cell[other, column]))
        for column in columns
        for one, other in combinations([agent for agent in agents if (agent, column) in by_cell], 2)
    ]
    compared = [each for each in shared if each[-1]]
    found = [_pair(column, one, other, both, len(compared)) for column, one, other, both in compared]
    corrected = holm([pair.p for pair in found])
    return [pair._replace(corrected=p) for pair, p in zip(found, corrected, strict=True)]


def _pair(column: Column, one: str, other: str, both: Sequence[Paired], pairs: int) -> Pair:
    """Compare two agents by `both` of their results of each test. `pairs` is how many pairs of agents are compared."""
    apart = [each.difference for each in both]
    parts = by_test(apart)
    difference, conversations = fsum(parts), len({each.conversation for each in apart})
    few = conversations < min(len(apart), least_conversations(pairs))
    p = paired_p(apart)
    return Pair(
        column=column,
        better=one if difference >= 0 else other,
        other=other if difference >= 0 else one,
        difference=abs(difference),
        conversations=conversations,
        tests=len(apart),
        unscored=sum(each.unscored for each in both),
        p=p,
        corrected=p,
        p_of_tests=permutation_p(parts) if few else None,
        more=more_conversations(apart, pairs),
        recorded=any(each.recorded for each in both),
    )


# ---- by scenario, skill and distance


def _grouped(
    tests: Iterable[_Played], agents: Sequence[str], belongs: Callable[[TestResult], Sequence[str]], column: Column | None = None
) -> dict[str, dict[str, Group]]:
    """Group the agents' tests by the names that `belongs` returns, in one column or in all."""
    chosen = [each for each in tests if column is None or each.run.column == column]
    by_name = _by(chosen, lambda each: belongs(each.test))
    found = {}
    for name in in_order(by_name):
        by_agent = _by(by_name[name], lambda each: [each.run.agent])
        found[name] = {agent: group([each.test for each in by_agent[agent]]) for agent in agents if agent in by_agent}
    return found


def _by_distance(asked: Mapping[str, Sequence[Point]]) -> dict[str, dict[str, Group]]:
    """Group each agent's graded questions by their evidence distance."""
    groups = {agent: grouped(found, by_distance) for agent, found in asked.items()}
    names = in_order({name for by_name in groups.values() for name in by_name})
    return {name: {agent: by_name[name] for agent, by_name in groups.items() if name in by_name} for name in names}


def _low(each: _Played) -> float:
    return each.test.lowest


def _high(each: _Played) -> float:
    return each.test.highest


def _by(values: Iterable[Value], keys: Callable[[Value], Sequence[Key]]) -> dict[Key, list[Value]]:
    """Group the values. A value is in the group of each of its keys."""
    groups: dict[Key, list[Value]] = {}
    for value in values:
        for key in keys(value):
            groups.setdefault(key, []).append(value)
    return groups
