"""What the engine takes for one conversation with an agent that answers at once, at spans of 32k to 500k tokens."""

from __future__ import annotations

from benchmarks._played import medians

__all__ = ["SPAN", "measure"]

SPAN = 0
"""All of SPANS."""

SPANS = (32_000, 120_000, 200_000, 500_000)


def measure(span: int) -> dict[str, float]:
    """The figures of `_played.measured` at each span, or at one."""
    return {f"{each // 1000}k: {name}": value for each in ([span] if span else SPANS) for name, value in medians(each).items()}
