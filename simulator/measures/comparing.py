"""Compares runs: agents by span, in pairs, by scenario, by skill and by evidence distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Final, final

from longspan.simulator.analysis.changes import data_of
from longspan.simulator.analysis.comparable import check_comparable, comparable, differences, other_data, pooled
from longspan.simulator.analysis.distance_curve import DistanceCurve
from longspan.simulator.analysis.distances import Distances, narrow
from longspan.simulator.analysis.groups import Group, by_scenario
from longspan.simulator.analysis.matrix import TestMatrix, score_bounds, test_matrices
from longspan.simulator.analysis.pairing import paired
from longspan.simulator.analysis.pairs import Pair, corrected, pair_of
from longspan.simulator.analysis.stages import EvidenceQuestions, recall_bounds
from longspan.simulator.analysis.units import repeated
from longspan.simulator.base.document import Document
from longspan.simulator.base.errors import InputError
from longspan.simulator.filler.draws import listed
from longspan.simulator.measures import compared
from longspan.simulator.measures.cells import Cell, by, cells_of, counted
from longspan.simulator.measures.group_tables import grouped_tests, one_line
from longspan.simulator.measures.leading import leading
from longspan.simulator.measures.meaning import SPEAKS, Played, meaning_of, silent
from longspan.simulator.measures.measure import SideBySide
from longspan.simulator.results.graded_runs import Column, Graded, Unusable, load, without_ungraded

__all__ = ["Comparison", "compare", "load_comparison", "load_comparisons", "load_finished"]

UNCOUNTED: Final = "none of its tests counts toward a score"


@final
@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of agents by their runs.

    `agents` are ranked best first: memories by recall, others by the lower bounds of their scores. `evidence` holds the evidence
    distances of each scenario's questions, for all agents together. `narrow` names the scenarios that occur only at some distances.
    `matrices` hold each agent's score in each test, or its recall if no agent has a score. `data` names the data that the tests are made
    from. `speaking` are the cells whose scores can speak of memory (see `meaning_of`). `measured` says what the scores measure, with
    remarks in brackets. `said` is the document of all other figures.
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
    speaking: set[tuple[str, Column]]
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
    def answers(self) -> str:
        """One sentence on memories whose answers say nothing about them: they are not shown to be better than guessing, or there are none.
        Empty if there is nothing to say, or if agents are compared by their scores."""
        if not self.side.by_recall:
            return ""
        if not self.side.answering:
            reasons = {test.reason for run in self.side.runs for test in run.result.tests if test.status == "unscored"}
            return f"No test has a score, and so none is shown: {'; '.join(sorted(reasons)):.200}"
        above = {agent for agent, _ in self.speaking}
        if not (guessed := [one_line(agent) for agent in self.side.answering if agent not in above]):
            return ""
        if above:
            return f"The answers of {listed(guessed)} are not shown to be better than guessing: recall ranks them, and not their scores."
        return "No memory's answers are shown to be better than guessing: recall ranks the memories, and not their scores."

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
    asked = {key: EvidenceQuestions.of((run.manifest, run.result.tests) for run in group) for key, group in by(runs, _place).items()}
    memories = {key: each for key, each in asked.items() if each.is_memory and key in cells}
    side = SideBySide(runs, _ranked(cells), columns, cells, memories)
    if side.by_recall:
        side = replace(side, agents=_ranked_by_recall(side))
    agents, speaking = side.agents, _speaking(runs)
    pairs, said = _pairs(side, speaking), compared(side)
    if not side.by_recall:
        said = said._replace(verdicts=[*leading(cells, tests, pairs, columns), *said.verdicts])
    return Comparison(
        suite=runs[0].manifest.suite.name,
        runs=len(runs),
        agents=list(agents),
        columns=columns,
        cells=cells,
        pairs=pairs,
        scenarios={column: grouped_tests(tests, agents, by_scenario, column) for column in columns},
        evidence={
            column: {name: Distances.of([each.test for each in group], column.span) for name, group in sorted(by_name.items())}
            for column in columns
            for by_name in [by((each for each in tests if each.run.column == column), lambda each: [each.test.scenario])]
        },
        side=side,
        speaking=speaking,
        said=said,
        matrices=test_matrices(runs, score_bounds if side.answering else partial(recall_bounds, k=side.k)),
        narrow=narrow([point for found in side.points.values() for point in found]),
        data=list(dict.fromkeys(line for run in runs for line in data_of(run.manifest))),
        measured="; ".join(dict.fromkeys(run.result.measured for run in runs)),
        warnings=[*silent([run for run in runs if run.agent in side.answering]), *differences(runs), *pooled(runs), *repeated(runs)],
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


def _ranked_by_recall(side: SideBySide) -> list[str]:
    """Rank memories, best first, by their mean recall over the columns that all have, or else over their own. The score decides ties."""
    found = {key: estimate.low for key, asked in side.memories.items() if (estimate := asked.found(side.k)) is not None}
    columns = by(found, lambda key: [key[0]])
    shared = set.intersection(*({column for _, column in keys} for keys in columns.values())) if len(columns) == len(side.agents) else set()

    def recall(agent: str) -> float:
        return fmean([found[key] for key in columns.get(agent, []) if not shared or key[1] in shared] or [0.0])

    return sorted(side.agents, key=lambda agent: -recall(agent))


def _speaking(runs: Sequence[Graded]) -> set[tuple[str, Column]]:
    """Return the agents and columns whose scores can speak of memory: they are better than guessing, as far as the tests can tell."""
    groups = by(runs, _place)
    played = {key: [Played(run.manifest, run.result.tests, run.result.control) for run in group] for key, group in groups.items()}
    return {key for key, group in played.items() if meaning_of(group).verdict in SPEAKS}


def _place(run: Graded) -> Sequence[tuple[str, Column]]:
    return [(run.agent, run.column)]


# ---- pairs


def _pairs(side: SideBySide, speaking: set[tuple[str, Column]]) -> list[Pair]:
    """Compare each pair of agents in each column where they share tests. Memories whose answers are not shown to be better than guessing
    are not compared by these."""
    by_cell, answering = by(side.runs, _place), side.answering
    shared = [
        (column, one, other, paired(by_cell[one, column], by_cell[other, column]))
        for column in side.columns
        for one, other in combinations([agent for agent in answering if (agent, column) in by_cell], 2)
        if not side.by_recall or {(one, column), (other, column)} & speaking
    ]
    compared = [each for each in shared if each[-1]]
    return corrected(
        [
            pair_of(
                column,
                one,
                other,
                [each.difference for each in both],
                pairs=len(compared),
                unscored=sum(each.unscored for each in both),
                recorded=any(each.recorded for each in both),
            )
            for column, one, other, both in compared
        ]
    )
