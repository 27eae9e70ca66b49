"""What it takes to write a run's report. What it costs its readers is measured by `page`."""

from __future__ import annotations

from benchmarks._played import medians

__all__ = ["measure"]


def measure(span: int) -> dict[str, float]:
    """Seconds for the report of a run at `span` tokens, and their ratio to one pass of the tokenizer over its text."""
    found = medians(span)
    figures = {name: found[name] for name in ("report wall s", "report cpu s", "tokenizer pass s", "process at most MB", "written MB")}
    return figures | {"report cpu / tokenizer pass": found["report cpu s"] / found["tokenizer pass s"]}
