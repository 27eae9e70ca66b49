"""What a comparison is worth: completeness, conciseness and faithfulness (CREAM, appendix A.1). Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

__all__ = ["Cited", "Metric", "completeness", "conciseness", "faithfulness"]

Metric = Literal["completeness", "conciseness", "faithfulness"]

Cited = Sequence[Sequence[int] | None]
"""For each key fact the numbers of the sentences that it follows from; None where the summary lacks it."""


def completeness(cited: Cited) -> float | None:
    """The share of the key facts that a summary holds; None where there are no facts."""
    return sum(each is not None for each in cited) / len(cited) if cited else None


def conciseness(cited: Cited, sentences: int) -> float | None:
    """The share of a summary's sentences that some key fact follows from; None where it has no sentences, or there are no facts."""
    if not sentences or not cited:
        return None
    return len({number for each in cited for number in each or ()}) / sentences


def faithfulness(errors: Sequence[str | None]) -> float | None:
    """The share of a summary's sentences without an error; None where it has no sentences. `errors`: for each what is wrong."""
    return sum(error is None for error in errors) / len(errors) if errors else None
