"""The engine's time and memory for a conversation with an agent that answers at once, at spans of 32k to 500k tokens."""

from __future__ import annotations

from benchmarks._played import medians

__all__ = ["SPAN", "measure"]

SPAN = 0
"""All of SPANS."""

SPANS = (32_000, 120_000, 200_000, 500_000)


def measure(span: int) -> dict[str, float]:
    """Return the figures of `_played.measured` at `span` or, if that is 0, at each of SPANS."""
    return {f"{size // 1000}k: {name}": value for size in ([span] if span else SPANS) for name, value in medians(size).items()}
