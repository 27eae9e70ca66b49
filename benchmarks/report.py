"""The time to write a run's report. `page` measures the time to use it."""

from __future__ import annotations

from benchmarks._played import medians

__all__ = ["measure"]


def measure(span: int) -> dict[str, float]:
    """Return the seconds for the report of a run at `span` tokens, and their ratio to one pass of the tokenizer over its text."""
    run = medians(span)
    figures = {name: run[name] for name in ("report wall s", "report cpu s", "tokenizer pass s", "process at most MB", "written MB")}
    return figures | {"report cpu / tokenizer pass": run["report cpu s"] / run["tokenizer pass s"]}
