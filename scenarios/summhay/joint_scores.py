"""Coverage, citation and joint scores (section 4), for one insight and pooled over insights."""

from __future__ import annotations

from collections.abc import Iterable, Set
from statistics import fmean
from typing import Final, NamedTuple, final

__all__ = ["COVERED", "InsightScores", "PooledScores", "pool_scores", "score_insight"]

COVERED: Final = {"full": 1.0, "partial": 0.5, "none": 0.0}
"""Coverage score of an insight that is covered fully, partly or not at all."""


@final
class InsightScores(NamedTuple):
    """An insight's scores. Those about citations count only if it is covered."""

    coverage: float
    precision: float = 0.0
    recall: float = 0.0
    citation: float = 0.0

    @property
    def joint(self) -> float:
        return self.coverage * self.citation


@final
class PooledScores(NamedTuple):
    """Means over `n` insights. Means of citation scores are over the covered insights, or None if none is covered."""

    coverage: float
    citation: float | None
    joint: float
    precision: float | None
    recall: float | None
    n: int


def score_insight(coverage: float, cited: Set[int], sources: Set[int]) -> InsightScores:
    """Score an insight with these `sources`, given its coverage by a bullet with these citations."""
    if not coverage:
        return InsightScores(0.0)
    both = len(cited & sources)
    precision = both / len(cited) if cited else 0.0
    recall = both / len(sources) if sources else 0.0
    citation = 2 * precision * recall / (precision + recall) if both else 0.0
    return InsightScores(coverage, precision, recall, citation)


def pool_scores(scores: Iterable[InsightScores]) -> PooledScores | None:
    """Return the pooled scores of insights, or None without insights."""
    insights = list(scores)
    if not insights:
        return None
    covered = [insight for insight in insights if insight.coverage]
    return PooledScores(
        coverage=fmean(insight.coverage for insight in insights),
        citation=fmean(insight.citation for insight in covered) if covered else None,
        joint=fmean(insight.joint for insight in insights),
        precision=fmean(insight.precision for insight in covered) if covered else None,
        recall=fmean(insight.recall for insight in covered) if covered else None,
        n=len(insights),
    )
