"""Parses summaries: every line that is not blank is a bullet, and cites documents as [3] or [1, 4] (section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from longspan.scenarios.summhay.signs import CITED, without_citations

__all__ = ["find_citations", "mean_length", "split_bullets"]


def split_bullets(summary: str) -> list[str]:
    """Return the summary's bullets, in order."""
    return [line.strip() for line in summary.splitlines() if line.strip()]


def find_citations(bullet: str) -> frozenset[int]:
    """Return the numbers that a bullet cites; -1 for a number with more digits than any document's."""
    numbers = (number.strip() for cited in CITED.findall(bullet) for number in cited.replace(" ", ",").split(","))
    return frozenset(int(number[-9:]) if len(number) < 10 else -1 for number in numbers if number)


def mean_length(summary: Sequence[str]) -> float:
    """Return the mean number of words in bullets, without citations; 0 without bullets."""
    return fmean(len(without_citations(bullet).split()) for bullet in summary) if summary else 0.0
