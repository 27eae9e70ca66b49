"""Compares runs: agents by span, in pairs, by scenario, by skill and by evidence distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import fsum
from pathlib import Path
from statistics import fmean
from typing import Final, NamedTuple, final

from longspan.simulator.analysis.changes import data_of
from longspan.simulator.analysis.comparable import check_comparable, comparable, differences, other_data, pooled
from longspan.simulator.analysis.distance_curve import DistanceCurve
from longspan.simulator.analysis.distances import Distances, narrow
from longspan.simulator.analysis.groups import Group, by_scenario
from longspan.simulator.analysis.matrix import TestMatrix, test_matrices
from longspan.simulator.analysis.pairing import Paired, paired
from longspan.simulator.analysis.statistics import by_test, holm, least_conversations, more_conversations, paired_p, permutation_p
from longspan.simulator.analysis.units import repeated
from longspan.simulator.base.document import Document
from longspan.simulator.base.errors import InputError
from longspan.simulator.measures import compared
from longspan.simulator.measures.cells import Cell, by, cells_of, counted
from longspan.simulator.measures.group_tables import grouped_tests
from longspan.simulator.measures.measure import SideBySide
from longspan.simulator.results.graded_runs import Column, Graded, Unusable, load, without_ungraded

__all__ = ["Comparison", "Pair", "compare", "load_comparison", "load_comparisons", "load_finished"]

UNCOUNTED: Final = "none of its tests counts toward a score"


@final
class Pair(NamedTuple):
    """Two agents on the same tests of a column, the agent with the higher score first. Tests without a score count as 0.

    `conversations` is the number of independent conversations that both have had; `recorded` is whether some of them tell recorded
    histories. `p` is the p-value of a permutation test over conversations, and `corrected` is `p` corrected for all pairs. Where
    conversations are too few for any difference to be significant, `p_of_tests` is the p-value of a permutation test over tests. It says
    nothing about other conversations, and is None elsewhere. `more` is how many more conversations would show a significant difference, or
    None if no number would.
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
    """A comparison of agents by their runs.

    `agents` are ranked by their lower bounds, best first. `evidence` holds the evidence distances of each scenario's questions, for all
    agents together. `narrow` names the scenarios that occur only at some distances. `matrices` hold each agent's score in each test.
    `data` names the data that the tests are made from. `measured` says what the scores measure, with remarks in brackets. `said` is the
    document of all other figures.
    """

    suite: str
    runs: int
    agents: list[str]
    columns: list[Column]
    cells: dict[tuple[str, Column], Cell]
    pairs: list[Pair]
    scenarios: dict[Column, dict[str, dict[str, Group]]]
    evidence: dict[Column, dict[str, Distances]]
    narrow: str | None
    matrices: list[TestMatrix]
    side: SideBySide
    said: Document
    data: list[str]
    measured: str
    warnings: list[str]
    unusable: list[Unusable]

    @property
    def mixed(self) -> bool:
        """Whether scores have different maxima, so that only shares of the maximum can be compared."""
        return len({cell.maximum for cell in self.cells.values()}) > 1

    @property
    def curves(self) -> dict[str, DistanceCurve]:
        """Each agent's curve of score by distance, over all spans. An agent with too few questions has no curve."""
        return self.side.curves

    @property
    def priced(self) -> bool:
        """Whether any run is known to have cost something."""
        return any(cell.cost_usd for cell in self.cells.values())


def load_comparison(paths: Sequence[Path]) -> Comparison:
    """Compare all runs in `paths`, each a run's folder or a folder of runs. Raises InputError."""
    return compare(*_loaded(paths))


def load_comparisons(paths: Sequence[Path]) -> dict[str, Comparison]:
    """Compare the runs in `paths` with those of the same tests: a comparison for each group (see `comparable`), by its name.

    Runs that cannot be used are in the first. Raises InputError.
    """
    runs, unusable = _loaded(paths)
    found = {name: compare(group, [] if number else unusable) for number, (name, group) in enumerate(comparable(runs).items())}
    first = next(iter(found.values()))
    return found | {next(iter(found)): replace(first, warnings=[*other_data(runs), *first.warnings])}


def _loaded(paths: Sequence[Path]) -> tuple[list[Graded], list[Unusable]]:
    """Load the usable runs, and the unusable ones with the reason. A run without a test that counts has no score, and is unusable.
    Raises InputError.
    """
    runs, unusable = load(paths)
    runs, ungraded = without_ungraded(runs)
    unusable += ungraded
    counted = [run for run in runs if run.result.max_score]
    unusable += [Unusable(run.folder.path, f"{run.folder.path}: {UNCOUNTED}") for run in runs if not run.result.max_score]
    if not counted:
        raise InputError(f"no run can be compared: {unusable[-1].why}")
    return counted, unusable


def load_finished(paths: Sequence[Path]) -> tuple[list[Graded], list[Unusable]]:
    """Load the runs that were played to their end, and the others with the reason. Raises InputError."""
    # A question that was never asked must count neither for nor against the agent, so unfinished runs are left out.
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
    tests = counted(runs)
    cells = cells_of(runs)
    columns = sorted({column for _, column in cells}, key=lambda column: (not column.isolated, column.span))
    agents = _ranked(cells)
    side = SideBySide(runs, agents, columns, cells)
    return Comparison(
        suite=runs[0].manifest.suite.name,
        runs=len(runs),
        agents=agents,
        columns=columns,
        cells=cells,
        pairs=_pairs(runs, agents, columns),
        scenarios={column: grouped_tests(tests, agents, by_scenario, column) for column in columns},
        evidence={
            column: {name: Distances.of([each.test for each in group], column.span) for name, group in sorted(by_name.items())}
            for column in columns
            for by_name in [by((each for each in tests if each.run.column == column), lambda each: [each.test.scenario])]
        },
        side=side,
        said=compared(side),
        matrices=test_matrices(runs),
        narrow=narrow([point for found in side.points.values() for point in found]),
        data=list(dict.fromkeys(line for run in runs for line in data_of(run.manifest))),
        measured="; ".join(dict.fromkeys(run.result.measured for run in runs)),
        warnings=[*differences(runs), *pooled(runs), *repeated(runs)],
        unusable=[*unusable, *ungraded],
    )


def _ranked(cells: Mapping[tuple[str, Column], Cell]) -> list[str]:
    """Rank the agents, best first, by their mean share of the maximum score over the columns that all agents have. If they have none in
    common, each agent's own columns count."""
    columns = by(cells, lambda key: [key[0]])
    shared = set.intersection(*({column for _, column in keys} for keys in columns.values()))

    def share(agent: str) -> float:
        counted = [cells[key] for key in columns[agent] if not shared or key[1] in shared]
        return fmean(cell.bounds[0] / cell.maximum for cell in counted)

    return sorted(columns, key=lambda agent: (-share(agent), agent))


# ---- pairs


def _pairs(runs: Sequence[Graded], agents: Sequence[str], columns: Sequence[Column]) -> list[Pair]:
    """Compare each pair of agents in each column where they share tests."""
    by_cell = by(runs, lambda run: [(run.agent, run.column)])
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
    """Compare two agents by `both`, their results in each shared test. `pairs` is how many pairs of agents are compared."""
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
