"""The progress of agents: their recall, scores and reach by version, oldest first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

from longspan.simulator.results.analysis.matrix import natural_sort_key
from longspan.simulator.results.analysis.stage_estimates import EvidenceQuestions
from longspan.simulator.results.graded_runs import Column, GradedRun
from longspan.simulator.results.measures.cells import cells_of
from longspan.simulator.results.measures.measure import SideBySide
from longspan.simulator.results.measures.reach import pool_reach
from longspan.simulator.suite.manifest import Manifest

__all__ = ["REACH", "has_versions", "measure_trends"]

UNDATED: Final = datetime.min.replace(tzinfo=UTC)

REACH: Final = "reach in tokens"

Point = tuple[float, float, float]
"""A figure, and the ends of its 95% interval."""

Lines = dict[tuple[str, Column], dict[str, Point]]
"""The figures of agents, named without their labels, by column and version."""


def has_versions(manifests: Iterable[Manifest]) -> bool:
    """Return whether an agent has runs of several versions in a suite and a column."""
    versions = {(manifest.suite.name, Column.of(manifest), *_name_version(manifest)) for manifest in manifests}
    return len(versions) > len({key[:3] for key in versions})


def measure_trends(side: SideBySide) -> tuple[list[str], dict[str, Lines]]:
    """Return the versions, in the order of their first runs, and their figures of each kind."""
    groups: dict[tuple[str, Column], dict[str, list[GradedRun]]] = {}
    order: dict[str, None] = {}
    # Dates are in seconds, which short runs of several versions may share.
    for run in sorted(side.runs, key=lambda run: (run.manifest.created or UNDATED, natural_sort_key(_name_version(run.manifest)[1]))):
        agent, version = _name_version(run.manifest)
        order[version] = None
        # Without its label, so that a run with the label abc1234 is pooled with one of the commit abc1234.
        bare = replace(run, manifest=run.manifest.model_copy(update={"label": None}))
        groups.setdefault((agent, run.column), {}).setdefault(version, []).append(bare)
    groups = {line: versions for line, versions in groups.items() if len(versions) > 1}
    measured = "; ".join(dict.fromkeys(run.result.measured for run in side.runs))
    panels: dict[str, Lines] = {}
    for name, find in ((f"recall@{side.k}", partial(_find_recall, side.k)), (measured, _find_score), (REACH, _find_reach)):
        found = {line: {at: point for at, runs in group.items() if (point := find(runs))} for line, group in groups.items()}
        panels[name] = {line: points for line, points in found.items() if points}
    versions = [each for each in order if any(each in found for found in groups.values())]
    return versions, {name: lines for name, lines in panels.items() if lines} or {measured: {}}


def _name_version(manifest: Manifest) -> tuple[str, str]:
    """Return the agent without its label, and its version: the label, or else the commit of its code."""
    commit, dirty, _ = (manifest.agent_commit or "").partition("-dirty")
    return manifest.model_copy(update={"label": None}).labelled, manifest.label or f"{commit[:7]}{dirty}" or "no label"


def _find_score(runs: Sequence[GradedRun]) -> Point | None:
    """Return the score as a share of full marks, None if no test has a score. Tests without a score widen the interval."""
    cell = next(iter(cells_of(runs).values()), None)
    if cell is None or not cell.statuses.get("scored"):
        return None
    low, high = cell.share
    ends = (low, high) if cell.interval is None else (cell.interval.low / cell.maximum, cell.interval.high / cell.maximum)
    return low, min(low, ends[0]), max(low, ends[1])


def _find_recall(k: int, runs: Sequence[GradedRun]) -> Point | None:
    asked = EvidenceQuestions.of((run.manifest, run.result.tests) for run in runs)
    if not asked.is_memory or (found := asked.estimate_found(k)) is None:
        return None
    ends = found.interval or found
    return found.low, min(found.low, ends.low), max(found.low, ends.high)


def _find_reach(runs: Sequence[GradedRun]) -> Point | None:
    """Return the reach in tokens: 0 if nothing is remembered, the furthest distance if no limit was found, and None if it is unknown."""
    for each in pool_reach(runs):
        tokens = each.reach and each.reach.tokens
        if tokens and tokens.value is not None:
            return tokens.value, tokens.low or 0, each.furthest if tokens.high is None else tokens.high
        if each.tells and each.kind in ("nothing", "none"):
            return (each.furthest if each.kind == "none" else 0,) * 3
    return None
