"""What it takes to write a run's report."""

from __future__ import annotations

from benchmarks._played import medians

__all__ = ["measure"]


def measure(span: int) -> dict[str, float]:
    """Seconds for the report of a run at `span` tokens, and their ratio to one pass of the tokenizer over its text."""
    found = medians(span)
    return {"report s": found["report s"], "report / tokenizer pass": found["report s"] / found["tokenizer pass s"]}
