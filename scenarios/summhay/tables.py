"""Report tables for summaries: the three scores, scores by a document's rank, and position bias (sections 4 and 5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import get_args

from longspan.scenarios.summhay.grading import TENTHS
from longspan.scenarios.summhay.joint_scores import InsightScores, PooledScores, pool_scores
from longspan.scenarios.summhay.retrievers import Position
from longspan.simulator.base.tables import Table
from longspan.simulator.contract.graded_record import Item, Marked

__all__ = ["summhay_tables"]

Runs = Mapping[str, Sequence[Marked]]


def summhay_tables(runs: Runs) -> list[Table]:
    """Return the tables over the insights of all runs' tests; empty if no insight has a score."""
    decided = {run: [item for test in tests for item in test.items if item.score is not None] for run, tests in runs.items()}
    if not any(decided.values()):
        return []
    every = [_summaries(runs), _by_rank(decided)]
    if any(item.labels["position"] != "stored" for items in decided.values() for item in items):
        every.append(_positions(decided))
    return every


def scores_of(items: Iterable[Item]) -> PooledScores | None:
    """Return the pooled scores of insights."""
    return pool_scores(_scores_of(item.numbers) for item in items)


def _scores_of(numbers: Mapping[str, float]) -> InsightScores:
    precision, recall, citation = (numbers.get(name, 0.0) for name in ("precision", "recall", "citation"))
    return InsightScores(numbers["coverage"], precision, recall, citation)


def _summaries(runs: Runs) -> Table:
    rows = []
    for run, tests in runs.items():
        found = scores_of(item for test in tests for item in test.items if item.score is not None)
        if found is None:
            continue
        first = [test.items[0].numbers for test in tests if test.items]
        words, given, asked = (fmean(numbers[name] for numbers in first) for name in ("words", "bullets", "asked"))
        shares = (found.coverage, found.citation, found.joint, found.precision, found.recall)
        rows.append([run, *map(_share, shares), f"{words:.1f}", f"{given:.1f} of {asked:.1f}", str(found.n)])
    columns = ["run", "coverage", "citation", "joint", "precision", "recall", "words a bullet", "bullets a summary", "insights"]
    note = "Pooled over all insights. Citation, precision and recall: over those that are covered, of the bullet that covers them."
    return Table(title="Summaries with sources", columns=columns, rows=rows, note=note)


def _by_rank(runs: Mapping[str, Sequence[Item]]) -> Table:
    """Return the scores by tenth of the documents shown. An insight counts in each tenth that contains one of its documents."""
    rows: list[list[str]] = []
    shades: list[list[float | None]] = []
    for run, items in runs.items():
        if items:
            for what, cells in (("coverage", _coverage_by_tenth(items)), ("citation", _citations_by_tenth(items))):
                rows.append([run, what, *(_share(cell, 2) for cell in cells)])
                shades.append([None, None, *cells])
    note = (
        "A document's rank among those shown, in tenths. Coverage: of the insights in it. "
        "Citation: the share of the covered ones whose bullet cites it (recall)."
    )
    columns = ["run", "score", *(f"tenth {tenth}" for tenth in range(1, TENTHS + 1))]
    return Table(title="By rank of the document", columns=columns, rows=rows, note=note, shades=shades)


def _coverage_by_tenth(items: Sequence[Item]) -> list[float | None]:
    """Return the mean coverage by tenth, counting an insight once for each of its documents in it."""
    means: list[float | None] = []
    for tenth in range(1, TENTHS + 1):
        weights = [(item.numbers.get(f"shown {tenth}", 0.0), item.numbers["coverage"]) for item in items]
        means.append(_ratio(sum(weight * coverage for weight, coverage in weights), sum(weight for weight, _ in weights)))
    return means


def _citations_by_tenth(items: Sequence[Item]) -> list[float | None]:
    """Return, by tenth, the share of covered insights' documents that are cited."""
    covered = [item.numbers for item in items if item.numbers["coverage"]]
    return [
        _ratio(*(sum(numbers.get(f"{what} {tenth}", 0.0) for numbers in covered) for what in ("cited", "shown")))
        for tenth in range(1, TENTHS + 1)
    ]


def _ratio(part: float, whole: float) -> float | None:
    return min(1.0, part / whole) if whole else None


def _positions(runs: Mapping[str, Sequence[Item]]) -> Table:
    """Return the joint score by position of the relevant documents, and the largest absolute difference from the stored order."""
    rows = []
    for run, items in runs.items():
        joint = {}
        for position in get_args(Position):
            found = scores_of(item for item in items if item.labels["position"] == position)
            joint[position] = None if found is None else found.joint
        stored = joint["stored"]
        others = [score for position, score in joint.items() if position != "stored" and score is not None]
        sensitivity = max(abs(score - stored) for score in others) if stored is not None and others else None
        rows.append([run, *(_share(joint[position]) for position in ("top", "middle", "bottom", "stored")), _share(sensitivity)])
    columns = ["run", "top", "middle", "bottom", "stored order", "sensitivity"]
    note = "The joint score by where the relevant documents were. Sensitivity: the largest absolute difference from the stored order."
    return Table(title="Position bias", columns=columns, rows=rows, note=note)


def _share(value: float | None, digits: int = 3) -> str:
    return "" if value is None else f"{value:.{digits}f}"
