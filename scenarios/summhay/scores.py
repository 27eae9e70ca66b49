"""Coverage, citation and joint scores (section 4), of one insight and pooled over insights."""

from __future__ import annotations

from collections.abc import Iterable, Set
from statistics import fmean
from typing import Final, NamedTuple, final

__all__ = ["COVERED", "Pooled", "Scored", "pooled", "scored"]

COVERED: Final = {"full": 1.0, "partial": 0.5, "none": 0.0}
"""The coverage score of an insight that is covered fully, partly or not at all."""


@final
class Scored(NamedTuple):
    """An insight's scores. Those about citations count only if it is covered."""

    coverage: float
    precision: float = 0.0
    recall: float = 0.0
    citation: float = 0.0

    @property
    def joint(self) -> float:
        return self.coverage * self.citation


@final
class Pooled(NamedTuple):
    """Means over `n` insights. Means about citations are over the covered ones, None if there are none."""

    coverage: float
    citation: float | None
    joint: float
    precision: float | None
    recall: float | None
    n: int


def scored(coverage: float, cited: Set[int], sources: Set[int]) -> Scored:
    """Score an insight of these `sources` with this coverage by a bullet with these citations."""
    if not coverage:
        return Scored(0.0)
    both = len(cited & sources)
    precision = both / len(cited) if cited else 0.0
    recall = both / len(sources) if sources else 0.0
    citation = 2 * precision * recall / (precision + recall) if both else 0.0
    return Scored(coverage, precision, recall, citation)


def pooled(scores: Iterable[Scored]) -> Pooled | None:
    """Return the pooled scores of insights; None if there are none."""
    insights = list(scores)
    if not insights:
        return None
    covered = [insight for insight in insights if insight.coverage]
    return Pooled(
        coverage=fmean(insight.coverage for insight in insights),
        citation=fmean(insight.citation for insight in covered) if covered else None,
        joint=fmean(insight.joint for insight in insights),
        precision=fmean(insight.precision for insight in covered) if covered else None,
        recall=fmean(insight.recall for insight in covered) if covered else None,
        n=len(insights),
    )
