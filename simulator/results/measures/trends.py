"""The progress of agents: their recall, scores and reach by version, oldest first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Final, NamedTuple, final

from longspan.simulator.results.analysis.stage_estimates import EvidenceQuestions
from longspan.simulator.results.graded_runs import Column, GradedRun
from longspan.simulator.results.measures.cells import cells_of
from longspan.simulator.results.measures.measure import SideBySide
from longspan.simulator.results.measures.reach import pool_reach
from longspan.simulator.suite.manifest import Manifest

__all__ = ["TrendPanel", "Trends", "has_versions", "measure_trends"]

UNDATED: Final = datetime.min.replace(tzinfo=UTC)

Line = tuple[str, Column]
"""An agent without its label, in one column."""

Point = tuple[float, float, float]
"""A figure, and the ends of its 95% interval."""


@final
class TrendPanel(NamedTuple):
    """Figures of one kind by line and version. `shares`: they are shares, not tokens."""

    measured: str
    shares: bool
    lines: Mapping[Line, Mapping[str, Point]]


@final
class Trends(NamedTuple):
    """The versions, oldest first, and the figures of all agents that have several versions in a column."""

    versions: Sequence[str]
    lines: Sequence[Line]
    panels: Sequence[TrendPanel]


def has_versions(manifests: Iterable[Manifest]) -> bool:
    """Return whether an agent has runs of several versions in a suite and a column."""
    versions = {(manifest.suite.name, Column.of(manifest), *_name_version(manifest)) for manifest in manifests}
    return len(versions) > len({key[:3] for key in versions})


def measure_trends(side: SideBySide) -> Trends:
    """Return the figures by version. Versions are in the order of their first runs."""
    groups: dict[Line, dict[str, list[GradedRun]]] = {}
    order: dict[str, None] = {}
    for run in sorted(side.runs, key=lambda run: run.manifest.created or UNDATED):
        agent, version = _name_version(run.manifest)
        order[version] = None
        # Without its label, so that a run with the label abc1234 is pooled with one of the commit abc1234.
        bare = replace(run, manifest=run.manifest.model_copy(update={"label": None}))
        groups.setdefault((agent, run.column), {}).setdefault(version, []).append(bare)
    groups = {line: versions for line, versions in groups.items() if len(versions) > 1}
    measured = "; ".join(dict.fromkeys(run.result.measured for run in side.runs))
    kinds: list[tuple[str, bool, Callable[[Sequence[GradedRun]], Point | None]]] = [
        (f"recall@{side.k}", True, partial(_find_recall, side.k)),
        (measured, True, _find_score),
        ("reach in tokens", False, _find_reach),
    ]
    panels = []
    for name, shares, find in kinds:
        found = {line: {name: point for name, runs in versions.items() if (point := find(runs))} for line, versions in groups.items()}
        panels.append(TrendPanel(name, shares, {line: points for line, points in found.items() if points}))
    versions = [each for each in order if any(each in found for found in groups.values())]
    return Trends(versions, list(groups), [panel for panel in panels if panel.lines] or panels[1:2])


def _name_version(manifest: Manifest) -> tuple[str, str]:
    """Return the agent without its label, and its version: the label, or else the commit of its code."""
    commit, dirty, _ = (manifest.agent_commit or "").partition("-dirty")
    return manifest.model_copy(update={"label": None}).labelled, manifest.label or f"{commit[:7]}{dirty}" or "no label"


def _find_score(runs: Sequence[GradedRun]) -> Point | None:
    """Return the score as a share of full marks, None for a memory that only searches. Tests without a score widen the interval."""
    (cell,) = cells_of(runs).values()
    if not cell.statuses.get("scored") and _ask(runs).is_memory:
        return None
    low, high = cell.share
    ends = (low, high) if cell.interval is None else (cell.interval.low / cell.maximum, cell.interval.high / cell.maximum)
    return low, min(low, ends[0]), max(low, ends[1])


def _find_recall(k: int, runs: Sequence[GradedRun]) -> Point | None:
    asked = _ask(runs)
    if not asked.is_memory or (found := asked.estimate_found(k)) is None:
        return None
    ends = found.interval or found
    return found.low, min(found.low, ends.low), max(found.low, ends.high)


def _ask(runs: Sequence[GradedRun]) -> EvidenceQuestions:
    return EvidenceQuestions.of((run.manifest, run.result.tests) for run in runs)


def _find_reach(runs: Sequence[GradedRun]) -> Point | None:
    """Return the reach in tokens: 0 if nothing is remembered, the furthest distance if no limit was found, and None if it is unknown."""
    for each in pool_reach(runs):
        tokens = each.reach and each.reach.tokens
        if tokens and tokens.value is not None:
            return tokens.value, tokens.low or 0, each.furthest if tokens.high is None else tokens.high
        if each.tells and each.kind in ("nothing", "none"):
            return (each.furthest if each.kind == "none" else 0,) * 3
    return None
