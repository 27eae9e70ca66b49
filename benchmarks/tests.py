"""What more tests take: 33 and 660 of them in one conversation."""

from __future__ import annotations

from benchmarks._played import medians

__all__ = ["SPAN", "measure"]

SPAN = 32_000


def measure(span: int) -> dict[str, float]:
    """The figures of `_played.measured` with 3 and with 60 tests of each scenario, and how many times as long the latter takes."""
    few, many = medians(span, 3), medians(span, 60)
    figures = {f"{tests} tests: {name}": value for tests, found in ((33, few), (660, many)) for name, value in found.items()}
    return figures | {"660 / 33 tests, wall": many["wall s"] / few["wall s"], "660 / 33 tests, cpu": many["cpu s"] / few["cpu s"]}
