"""Compares runs: agents by span, in pairs, by scenario, by skill and by evidence distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Final, final

from longspan.simulator.base.agent_names import short_names
from longspan.simulator.base.document import MORE_RUNS, Document, Sentence
from longspan.simulator.base.errors import InputError
from longspan.simulator.filler.draws import join_words
from longspan.simulator.results.analysis.attempts import Attempts, Key, count_attempts, describe_attempts
from longspan.simulator.results.analysis.changes import data_of
from longspan.simulator.results.analysis.comparable import (
    check_comparable,
    describe_differences,
    describe_pooling,
    group_comparable,
    other_data,
)
from longspan.simulator.results.analysis.contrasts import agent_named
from longspan.simulator.results.analysis.distance_curve import DistanceCurve
from longspan.simulator.results.analysis.distances import Distances, describe_narrow_scenarios
from longspan.simulator.results.analysis.groups import Group, by_scenario
from longspan.simulator.results.analysis.matrix import TestMatrix, score_bounds, test_matrices
from longspan.simulator.results.analysis.pairs import Pair, compare_pairs
from longspan.simulator.results.analysis.stage_estimates import EvidenceQuestions, recall_bounds
from longspan.simulator.results.analysis.units import describe_repeats
from longspan.simulator.results.graded_runs import Column, GradedRun, Unusable, load_runs, without_ungraded
from longspan.simulator.results.measures import document_comparison
from longspan.simulator.results.measures.against import describe_against
from longspan.simulator.results.measures.cells import Cell, cells_of, counted_tests, group_by
from longspan.simulator.results.measures.group_tables import group_by_agent
from longspan.simulator.results.measures.leading import describe_leaders
from longspan.simulator.results.measures.meaning import UNWARNED, RunScores, describe_warnings, meaning_of
from longspan.simulator.results.measures.measure import SideBySide
from longspan.simulator.results.measures.pair_tables import too_few

__all__ = ["Comparison", "compare_runs", "load_comparison", "load_comparisons", "load_finished"]

UNCOUNTED: Final = "none of its tests counts toward a score"


@final
@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of agents by their runs.

    `agents` are ranked best first: memories by recall, others by the lower bounds of their scores. `evidence` has the evidence distances of
    each scenario's questions, over all agents. `narrow` names the scenarios that occur only at some distances. `matrices` show each agent's
    score in each test, or its recall if no agent has a score. `data` names the data behind the tests. `unwarned` are the cells whose scores
    need no warning (see `meaning_of`). `measured` names the quantity that scores measure, with remarks in brackets. `against` compares
    agents with the baseline, if one was chosen. `said` is the document of all other figures. `attempts` counts all runs of the same tests
    in the runs' folders, if requested.
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
    unwarned: set[tuple[str, Column]]
    said: Document
    against: list[Pair]
    data: list[str]
    measured: str
    warnings: list[str]
    unusable: list[Unusable]
    attempts: Mapping[tuple[str, Column], Attempts] = field(default_factory=dict)

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
        """A sentence on memories whose answers are missing or not shown to be better than guessing.

        Empty if all answers are better, or if agents are compared by their scores.
        """
        if not self.side.by_recall:
            return ""
        if not self.side.answering:
            reasons = {test.reason for run in self.side.runs for test in run.result.tests if test.status == "unscored"}
            return f"No test has a score: {'; '.join(sorted(reasons)):.200}"
        above = {agent for agent, _ in self.unwarned}
        if not (guessed := [self.side.called.names[agent] for agent in self.side.answering if agent not in above]):
            return ""
        if above:
            return (
                f"The answers of {join_words(guessed)} are not shown to be better than guessing: they are ranked by recall, not by score."
            )
        return "No memory's answers are better than guessing: memories are ranked by recall, not by score."

    @property
    def priced(self) -> bool:
        """Whether any run is known to have cost something."""
        return any(cell.cost_usd for cell in self.cells.values())


def load_comparison(paths: Sequence[Path]) -> Comparison:
    """Compare all runs in `paths`, each a run's folder or a folder of runs. Raises InputError."""
    runs, unusable = _load_usable(paths)
    return _with_attempts(compare_runs(runs, unusable), count_attempts(paths, runs))


def load_comparisons(paths: Sequence[Path], baseline: str | None = None) -> dict[str, Comparison]:
    """Compare the runs in `paths` that play the same tests: a comparison for each group (see `group_comparable`), by its name.

    `baseline` is an agent's short or full name. Agents are compared with it in each group where it has runs. Unusable runs are listed in
    the first group. Raises InputError, also for a baseline that matches no run or several agents.
    """
    runs, unusable = _load_usable(paths)
    chosen = None if baseline is None else _find_baseline(baseline, runs)
    groups = group_comparable(runs)
    found = {name: compare_runs(group, [] if number else unusable, chosen) for number, (name, group) in enumerate(groups.items())}
    first = next(iter(found.values()))
    found |= {next(iter(found)): replace(first, warnings=[*other_data(runs), *first.warnings])}
    return {name: _with_attempts(comparison, count_attempts(paths, groups[name])) for name, comparison in found.items()}


def _with_attempts(comparison: Comparison, tried: Mapping[Key, Attempts]) -> Comparison:
    """Return the comparison with the attempts at its tests, described first."""
    told = describe_attempts(tried, comparison.side.called.names)
    return replace(comparison, attempts={key[:2]: each for key, each in tried.items()}, warnings=[*told, *comparison.warnings])


def _load_usable(paths: Sequence[Path]) -> tuple[list[GradedRun], list[Unusable]]:
    """Load the usable runs, and the unusable ones with the reason. A run has no score without a test that counts, and is then unusable.

    Raises InputError.
    """
    runs, unusable = load_runs(paths)
    runs, ungraded = without_ungraded(runs)
    unusable += ungraded
    counted = [run for run in runs if run.result.max_score]
    unusable += [Unusable(run.folder.path, f"{run.folder.path}: {UNCOUNTED}") for run in runs if not run.result.max_score]
    if not counted:
        raise InputError(f"no run can be compared: {unusable[-1].why}")
    return counted, unusable


def load_finished(paths: Sequence[Path]) -> tuple[list[GradedRun], list[Unusable]]:
    """Load the runs that were played to their end, and the others with the reason. Raises InputError."""
    # A question that was never asked must count neither for nor against the agent, so unfinished runs are left out.
    runs, unusable = _load_usable(paths)
    left = [run for run in runs if run.result.interrupted]
    unusable += [Unusable(run.folder.path, f"{run.folder.path}: not finished; `longspan resume` continues it") for run in left]
    if len(left) == len(runs):
        raise InputError(f"no run is finished: {unusable[-1].why}")
    return [run for run in runs if run not in left], unusable


def _find_baseline(baseline: str, runs: Sequence[GradedRun]) -> str:
    """Return the agent that a baseline names. Raises InputError if no agent matches, or if it is the only one."""
    agents = list(dict.fromkeys(run.agent for run in runs))
    short = {name: agent for agent, name in short_names(agents).names.items()}
    chosen = short[baseline] if baseline in short else agent_named(baseline, [run.manifest for run in runs], "--baseline")
    if len(agents) == 1:
        raise InputError(f"--baseline {baseline!r:.60}: all runs are of this agent; name runs of others as well")
    return chosen


def compare_runs(runs: Sequence[GradedRun], unusable: Sequence[Unusable] = (), baseline: str | None = None) -> Comparison:
    """Compare runs: all agents with each other, or with the agent `baseline` where it has runs.

    Raises InputError if the runs do not play the same tests (see `check_comparable`), or if no test is graded.
    """
    check_comparable(runs)
    runs, ungraded = without_ungraded(runs)
    tests = counted_tests(runs)
    cells = cells_of(runs)
    columns = sorted({column for _, column in cells}, key=lambda column: (not column.isolated, column.span))
    asked = {key: EvidenceQuestions.of((run.manifest, run.result.tests) for run in group) for key, group in group_by(runs, _place).items()}
    memories = {key: each for key, each in asked.items() if each.is_memory and key in cells}
    # Ranked twice: whether recall decides is only known once the cells and the memories are.
    ranked = _rank_agents(cells)
    side = SideBySide(runs, ranked, columns, cells, memories, baseline if baseline in ranked else None)
    if side.by_recall:
        side = replace(side, agents=_rank_by_recall(side))
    agents, unwarned = side.agents, _find_unwarned(runs)
    pairs, said = _pairs(side, unwarned), document_comparison(side)
    apart = [] if side.baseline is None else side.against(side.baseline)
    if side.baseline is not None:
        said = said._replace(verdicts=[*describe_against(side, apart), *said.verdicts])
    elif not side.by_recall:
        said = said._replace(verdicts=[*describe_leaders(side, tests, pairs), *said.verdicts])
    if few := too_few(apart or (side.recall_pairs if side.by_recall else pairs)):
        said = said._replace(verdicts=[*said.verdicts, Sentence(few, MORE_RUNS)])
    return Comparison(
        suite=runs[0].manifest.suite.name,
        runs=len(runs),
        agents=list(agents),
        columns=columns,
        cells=cells,
        pairs=pairs,
        scenarios={column: group_by_agent(tests, agents, by_scenario, column) for column in columns},
        evidence={
            column: {name: Distances.of([each.test for each in group], column.span) for name, group in sorted(by_name.items())}
            for column in columns
            for by_name in [group_by((each for each in tests if each.run.column == column), lambda each: [each.test.scenario])]
        },
        side=side,
        unwarned=unwarned,
        said=said,
        against=apart,
        matrices=test_matrices(runs, score_bounds if side.answering else partial(recall_bounds, k=side.k)),
        narrow=describe_narrow_scenarios([point for found in side.points.values() for point in found]),
        data=list(dict.fromkeys(line for run in runs for line in data_of(run.manifest))),
        measured="; ".join(dict.fromkeys(run.result.measured for run in runs)),
        warnings=[
            *describe_warnings([run for run in runs if run.agent in side.answering], side.called.names),
            *describe_differences(runs),
            *describe_pooling(runs),
            *describe_repeats(runs),
        ],
        unusable=[*unusable, *ungraded],
    )


def _rank_agents(cells: Mapping[tuple[str, Column], Cell]) -> list[str]:
    """Rank the agents, best first, by their mean share of the maximum score over the columns that all agents share.

    If they share no column, each agent's own columns count.
    """
    columns = group_by(cells, lambda key: [key[0]])
    shared = set.intersection(*({column for _, column in keys} for keys in columns.values()))

    def share(agent: str) -> float:
        counted = [cells[key] for key in columns[agent] if not shared or key[1] in shared]
        return fmean(cell.bounds[0] / cell.maximum for cell in counted)

    return sorted(columns, key=lambda agent: (-share(agent), agent))


def _rank_by_recall(side: SideBySide) -> list[str]:
    """Rank memories, best first, by their mean recall over the columns that all have, or else over their own. The score decides ties."""
    found = {key: estimate.low for key, asked in side.memories.items() if (estimate := asked.estimate_found(side.k)) is not None}
    columns = group_by(found, lambda key: [key[0]])
    shared = set.intersection(*({column for _, column in keys} for keys in columns.values())) if len(columns) == len(side.agents) else set()

    def recall(agent: str) -> float:
        return fmean([found[key] for key in columns.get(agent, []) if not shared or key[1] in shared] or [0.0])

    return sorted(side.agents, key=lambda agent: -recall(agent))


def _find_unwarned(runs: Sequence[GradedRun]) -> set[tuple[str, Column]]:
    """Return the agents and columns whose scores need no warning: as far as the tests show, they differ from guessing."""
    groups = group_by(runs, _place)
    played = {key: [RunScores(run.manifest, run.result.tests, run.result.control) for run in group] for key, group in groups.items()}
    return {key for key, group in played.items() if meaning_of(group).verdict in UNWARNED}


def _place(run: GradedRun) -> Sequence[tuple[str, Column]]:
    return [(run.agent, run.column)]


def _pairs(side: SideBySide, unwarned: set[tuple[str, Column]]) -> list[Pair]:
    """Compare each pair of agents in each column where they share tests, the better first.

    With a baseline there are no pairs, since each agent is compared with the baseline instead. If recall comes first, pairs of memories are
    left out if both of their scores need a warning (see `meaning_of`).
    """
    if side.baseline is not None:
        return []
    chosen = [
        each for each in side.shared_scores if not side.by_recall or {(each.agent, each.column), (each.other, each.column)} & unwarned
    ]
    return [pair.best_first for pair in compare_pairs(chosen)]
