# ruff: noqa: N999
"""How long it takes before anything happens: Python alone, `import longspan`, `longspan --help`; and a whole run of 2k, against
importing what it cannot do without."""

from __future__ import annotations

import os
import subprocess
import sys
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks._played import RUNS

__all__ = ["measure"]

NEEDED = "import trio, typer"
RUN = "run ltm 2k"

STARTS = {
    "python": "pass",
    "import longspan": "import longspan",
    NEEDED: NEEDED,
    "longspan --help": "from longspan.simulator.cli import main; main(['--help'])",
    RUN: "import sys; from longspan.simulator.cli import main; main(['run', 'ltm', '--agent', 'silent', '--out', sys.argv[1]])",
}


def measure(span: int) -> dict[str, float]:
    """Median seconds of whole processes, whatever the span: by the clock, and of the processor. And how often longer the run takes
    than the imports, which are measured in turns. Templates and token ranks are in the user's cache folder."""
    _seconds(STARTS[RUN])
    found = [{name: _seconds(code) for name, code in STARTS.items()} for _ in range(RUNS)]
    figures = {}
    for at, what in enumerate(("wall", "cpu")):
        for name in STARTS:
            figures[f"{name}: {what} s"] = median(each[name][at] for each in found)
        figures[f"{RUN} / {NEEDED}: {what}"] = median(each[RUN][at] / each[NEEDED][at] for each in found)
    return figures


def _seconds(code: str) -> tuple[float, float]:
    with TemporaryDirectory() as folder:
        before, began = os.times(), perf_counter()
        subprocess.run([sys.executable, "-c", code, folder], stdout=subprocess.DEVNULL, check=True)  # noqa: S603
        wall, after = perf_counter() - began, os.times()
    return wall, after.children_user + after.children_system - before.children_user - before.children_system
