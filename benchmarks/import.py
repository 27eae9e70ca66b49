# ruff: noqa: N999
"""How long it takes before anything happens: `longspan --help`, `import longspan`, and Python alone."""

from __future__ import annotations

import os
import subprocess
import sys
from statistics import median
from time import perf_counter

from benchmarks._played import RUNS

__all__ = ["measure"]

STARTS = {
    "python": "pass",
    "import longspan": "import longspan",
    "longspan --help": "from longspan.simulator.cli import main; main(['--help'])",
}


def measure(span: int) -> dict[str, float]:
    """Median seconds of whole processes, whatever the span: by the clock, and of the processor."""
    figures = {}
    for name, code in STARTS.items():
        found = [_seconds(code) for _ in range(RUNS)]
        figures[f"{name}: wall s"] = median(wall for wall, _ in found)
        figures[f"{name}: cpu s"] = median(cpu for _, cpu in found)
    return figures


def _seconds(code: str) -> tuple[float, float]:
    before, began = os.times(), perf_counter()
    subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=True)  # noqa: S603
    wall, after = perf_counter() - began, os.times()
    return wall, after.children_user + after.children_system - before.children_user - before.children_system
