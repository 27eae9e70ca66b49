"""A summary taken apart: every line that is not blank is a bullet, and cites documents as [3] or [1, 4] (section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from longspan.scenarios.summhay.signs import CITED, without_citations

__all__ = ["bullets", "citations", "length"]


def bullets(summary: str) -> list[str]:
    """The summary's bullets, in order."""
    return [line.strip() for line in summary.splitlines() if line.strip()]


def citations(bullet: str) -> frozenset[int]:
    """The numbers that a bullet cites. One of more digits than any document's is as wrong as any other."""
    found = (number.strip() for cited in CITED.findall(bullet) for number in cited.replace(" ", ",").split(","))
    return frozenset(int(number[-9:]) if len(number) < 10 else -1 for number in found if number)


def length(every: Sequence[str]) -> float:
    """The mean number of words of bullets, citations aside; 0 where there are none."""
    return fmean(len(without_citations(bullet).split()) for bullet in every) if every else 0.0
