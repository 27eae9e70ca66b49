"""The cost of more tests: 33 and 660 in one conversation."""

from __future__ import annotations

from statistics import median

from benchmarks._played import RUNS, medians

__all__ = ["SPAN", "measure"]

SPAN = 32_000


def measure(span: int) -> dict[str, float]:
    """Return the figures of `_played.measured` with 3 and with 60 tests of each scenario, and their ratios."""
    pairs = [(medians(span, 3, runs=1), medians(span, 60, runs=1)) for _ in range(RUNS)]  # alternately, as a machine's speed varies
    few, many = ({name: median(each[name] for each in found) for name in found[0]} for found in zip(*pairs, strict=True))
    figures = {f"{tests} tests: {name}": value for tests, found in ((33, few), (660, many)) for name, value in found.items()}
    return figures | {"660 / 33 tests, wall": many["wall s"] / few["wall s"], "660 / 33 tests, cpu": many["cpu s"] / few["cpu s"]}
