"""Coverage, citation and joint score (section 4): of an insight, and pooled over all insights of any number of summaries."""

from __future__ import annotations

from collections.abc import Iterable, Set
from statistics import fmean
from typing import Final, NamedTuple, final

__all__ = ["COVERED", "Pooled", "Scored", "pooled", "scored"]

COVERED: Final = {"full": 1.0, "partial": 0.5, "none": 0.0}
"""What an insight scores for being covered fully, partly or not at all."""


@final
class Scored(NamedTuple):
    """An insight's scores. What it is about citations counts only where it is covered."""

    coverage: float
    precision: float = 0.0
    recall: float = 0.0
    citation: float = 0.0

    @property
    def joint(self) -> float:
        return self.coverage * self.citation


@final
class Pooled(NamedTuple):
    """Means over `n` insights; those about citations over the covered ones, None where there are none."""

    coverage: float
    citation: float | None
    joint: float
    precision: float | None
    recall: float | None
    n: int


def scored(coverage: float, cited: Set[int], sources: Set[int]) -> Scored:
    """The scores of an insight that is covered so far by a bullet that cites documents, and stands in `sources`."""
    if not coverage:
        return Scored(0.0)
    both = len(cited & sources)
    precision = both / len(cited) if cited else 0.0
    recall = both / len(sources) if sources else 0.0
    citation = 2 * precision * recall / (precision + recall) if both else 0.0
    return Scored(coverage, precision, recall, citation)


def pooled(every: Iterable[Scored]) -> Pooled | None:
    """The scores of all insights together; None where there is none."""
    found = list(every)
    if not found:
        return None
    covered = [each for each in found if each.coverage]
    citation, precision, recall = (
        (fmean(each.citation for each in covered), fmean(each.precision for each in covered), fmean(each.recall for each in covered))
        if covered
        else (None, None, None)
    )
    return Pooled(fmean(each.coverage for each in found), citation, fmean(each.joint for each in found), precision, recall, len(found))
