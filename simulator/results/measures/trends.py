"""The progress of agents: their scores, recall and reach by version, oldest first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from operator import itemgetter
from typing import Final, NamedTuple, final

from longspan.simulator.results.analysis.stage_estimates import EvidenceQuestions
from longspan.simulator.results.graded_runs import Column, GradedRun
from longspan.simulator.results.measures.cells import cells_of
from longspan.simulator.results.measures.measure import SideBySide
from longspan.simulator.results.measures.reach import pool_reach

__all__ = ["Line", "TrendPanel", "Trends", "group_by_version", "measure_trends"]

UNLABELLED: Final = "no label"
"""The name of a version without a label and without a commit."""

UNDATED: Final = datetime.min.replace(tzinfo=UTC)

Line = tuple[str, Column]
"""An agent without its label, in one column."""


@final
class TrendPoint(NamedTuple):
    """A version's figure with the ends of its 95% interval. `chance` is the score of guessing, if there is one."""

    value: float
    low: float
    high: float
    chance: float | None = None


@final
class TrendPanel(NamedTuple):
    """What is measured, by line and version. `shares`: figures are shares, not tokens."""

    measured: str
    lines: Mapping[Line, Mapping[str, TrendPoint]]
    shares: bool = True


@final
class Trends(NamedTuple):
    """The agents' versions, oldest first, the lines, and what is measured."""

    versions: list[str]
    lines: list[Line]
    panels: list[TrendPanel]


def group_by_version(runs: Sequence[GradedRun]) -> dict[Line, dict[str, list[GradedRun]]]:
    """Group the runs of agents that have several versions in a column, in the order of their first runs.

    A version is a run's label, or else the commit of its agent's code.
    """
    lines: dict[Line, dict[str, list[GradedRun]]] = {}
    for run in sorted(runs, key=lambda run: run.manifest.created or UNDATED):
        commit, dirty, _ = (run.manifest.agent_commit or "").partition("-dirty")
        version = run.manifest.label or f"{commit[:7]}{dirty}" or UNLABELLED
        bare = run.manifest.model_copy(update={"label": None})
        lines.setdefault((bare.labelled, run.column), {}).setdefault(version, []).append(replace(run, manifest=bare))
    return {line: versions for line, versions in lines.items() if len(versions) > 1}


def measure_trends(side: SideBySide) -> Trends:
    """Return the trend of memories' recall, of scores and of the reach, as far as they are known."""
    lines = group_by_version(side.runs)
    dated = [(run.manifest.created or UNDATED, name) for versions in lines.values() for name, runs in versions.items() for run in runs]

    def panel(measured: str, find: Callable[[Sequence[GradedRun]], TrendPoint | None], *, shares: bool = True) -> TrendPanel:
        found = {line: {name: point for name, runs in versions.items() if (point := find(runs))} for line, versions in lines.items()}
        return TrendPanel(measured, {line: points for line, points in found.items() if points}, shares)

    panels = [
        *([panel(f"recall@{side.k}", partial(_find_recall, side.k))] if side.by_recall else []),
        *([panel("score", _find_score)] if side.answering else []),
        panel("reach", _find_reach, shares=False),
    ]
    versions = list(dict.fromkeys(name for _, name in sorted(dated, key=itemgetter(0))))
    return Trends(versions, list(lines), [panel for panel in panels if panel.lines])


def _find_score(runs: Sequence[GradedRun]) -> TrendPoint | None:
    """Return the score as a share of full marks. Tests without a score widen the interval."""
    for cell in cells_of(runs).values():
        low, high = cell.share
        between = cell.interval
        ends = (low, high) if between is None else (between.low / cell.maximum, between.high / cell.maximum)
        return TrendPoint(low, min(low, ends[0]), max(low, ends[1]), cell.chance / cell.maximum)
    return None


def _find_recall(k: int, runs: Sequence[GradedRun]) -> TrendPoint | None:
    found = EvidenceQuestions.of((run.manifest, run.result.tests) for run in runs).estimate_found(k)
    if found is None:
        return None
    ends = found.interval or found
    return TrendPoint(found.low, min(found.low, ends.low), max(found.low, ends.high))


def _find_reach(runs: Sequence[GradedRun]) -> TrendPoint | None:
    """Return the reach in tokens: 0 if nothing is remembered, and the furthest distance if no limit was found."""
    for each in pool_reach(runs):
        tokens = each.reach and each.reach.tokens
        if tokens and tokens.value is not None:
            return TrendPoint(tokens.value, tokens.low or 0, each.furthest if tokens.high is None else tokens.high)
        if each.tells and each.kind in ("nothing", "none"):
            return TrendPoint(*(each.furthest if each.kind == "none" else 0,) * 3)
    return None
