"""What the experiments of several runs show together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any, Final, NamedTuple, final

from longspan.simulator.analysis.graded_runs import Column, Graded
from longspan.simulator.analysis.statistics import Difference, Interval, effect_interval
from longspan.simulator.analysis.units import Key, Units, keys
from longspan.simulator.grading.effects import TestEffect, is_shown

__all__ = ["EXPERIMENTS", "Pooled", "experiment_rows", "pooled_effects"]

EXPERIMENTS: Final[dict[str, type]] = {
    "agent": str,
    "span": int,
    "seed": int,
    "experiment": str,
    "tokens": int,
    "test": str,
    "scenario": str,
    "score": float,
    "score_without": float,
    "difference": float,
    "reason": str,
}
"""The columns of the table of experiments; docs/python.md describes each."""


@final
class Pooled(NamedTuple):
    """What an agent's experiments in a column show: `name` is what tests did without. Means over the `tests` that have both scores, in so
    many `conversations`."""

    name: str
    agent: str
    column: Column
    tests: int
    conversations: int
    score: float
    without: float
    interval: Interval

    @property
    def difference(self) -> float:
        return self.score - self.without

    @property
    def share(self) -> float | None:
        """The difference as a share of the score; None where the interval includes 0."""
        shown = is_shown((self.interval.low, self.interval.high))
        return self.difference / self.score if self.score and shown else None


def experiment_rows(runs: Sequence[Graded]) -> Iterator[dict[str, Any]]:
    """Yield a row for each test of each experiment."""
    for run in runs:
        manifest = run.manifest
        for kind, effect in (("twin", run.result.twins), ("lesion", run.result.lesions)):
            if effect is None:
                continue
            for row in effect.tests:
                about = {"agent": run.agent, "span": manifest.span, "seed": manifest.seed, "experiment": kind, "tokens": effect.tokens}
                yield about | row.model_dump(include={name for name in EXPERIMENTS if name not in about})


def pooled_effects(runs: Sequence[Graded]) -> list[Pooled]:
    """Return what the runs' experiments show, in the order of agents and columns in which they come. Only what has both scores counts."""
    groups: dict[tuple[str, str, Column], list[tuple[Graded, TestEffect]]] = {}
    for run in runs:
        for effect in filter(None, (run.result.twins, run.result.lesions)):
            name = "without needles" if effect.tokens is None else f"with the last {effect.tokens:,} tokens"
            known = [(run, row) for row in effect.tests if row.difference is not None and row.test in run.roots]
            groups.setdefault((name, run.agent, run.column), []).extend(known)
    return [_pooled(*key, group) for key, group in groups.items() if group]


def _pooled(name: str, agent: str, column: Column, group: Sequence[tuple[Graded, TestEffect]]) -> Pooled:
    units = Units(run.manifest for run, _ in group)
    tests: dict[Key, list[float]] = {}
    for run, row in group:
        tests.setdefault(keys(run.manifest)[row.test], []).append(row.difference or 0.0)
    differences = [Difference(key.scenario, units.of(key), fmean(values)) for key, values in tests.items()]
    return Pooled(
        name,
        agent,
        column,
        tests=len(group),
        conversations=len({each.conversation for each in differences}),
        score=fmean(row.score or 0.0 for _, row in group),
        without=fmean(row.score_without or 0.0 for _, row in group),
        interval=effect_interval(differences),
    )
