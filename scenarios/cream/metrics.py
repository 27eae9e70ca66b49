"""The metrics completeness, conciseness and faithfulness (CREAM, appendix A.1), as pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

__all__ = ["Cited", "Metric", "score_completeness", "score_conciseness", "score_faithfulness"]

Metric = Literal["completeness", "conciseness", "faithfulness"]

Cited = Sequence[Sequence[int] | None]
"""For each key fact, the numbers of the sentences that it follows from, or None if the summary lacks it."""


def score_completeness(cited: Cited) -> float | None:
    """Return the share of the key facts that a summary contains, or None without facts."""
    return sum(sentences is not None for sentences in cited) / len(cited) if cited else None


def score_conciseness(cited: Cited, sentences: int) -> float | None:
    """Return the share of a summary's sentences that support a key fact, or None without sentences or facts."""
    if not sentences or not cited:
        return None
    return len({number for numbers in cited for number in numbers or ()}) / sentences


def score_faithfulness(errors: Sequence[str | None]) -> float | None:
    """Return the share of a summary's sentences without an error, or None without sentences. `errors` holds the error of each sentence, or
    None."""
    return sum(error is None for error in errors) / len(errors) if errors else None
