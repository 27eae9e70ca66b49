# ruff: noqa: N999
"""How long it takes before anything happens: Python alone, `import longspan`, `longspan --help`; and a whole run of 2k, against
importing what it cannot do without."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks._played import RUNS

__all__ = ["measure", "run_to_imports"]

NEEDED = "import trio, typer"
RUN = "run ltm 2k"

STARTS = {
    "python": "pass",
    "import longspan": "import longspan",
    NEEDED: NEEDED,
    "longspan --help": "from longspan.simulator.cli import main; main(['--help'])",
    RUN: "import sys; from longspan.simulator.cli import main; sys.argv[:1] = 'longspan run ltm --agent silent --out'.split(); main()",
}


def measure(span: int) -> dict[str, float]:
    """Median seconds of whole processes, whatever the span: by the clock, and of the processor. And how often longer the run takes
    than the imports, which are measured in turns. Templates and token ranks are in the user's cache folder."""
    with _compiled() as seconds:
        found = [{name: seconds(code) for name, code in STARTS.items()} for _ in range(RUNS)]
    figures = {}
    for at, what in enumerate(("wall", "cpu")):
        for name in STARTS:
            figures[f"{name}: {what} s"] = median(each[name][at] for each in found)
        figures[f"{RUN} / {NEEDED}: {what}"] = median(each[RUN][at] / each[NEEDED][at] for each in found)
    return figures


def run_to_imports(runs: int) -> float:
    """How often longer the run takes the processor than the imports that it cannot do without: the median of `runs` pairs."""
    with _compiled() as seconds:
        return median(seconds(STARTS[RUN])[1] / seconds(NEEDED)[1] for _ in range(runs))


@contextmanager
def _compiled() -> Iterator[Callable[[str], tuple[float, float]]]:
    """Give what measures the seconds of a process, with all modules compiled beforehand, as they are where a package is installed."""
    with TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = folder
        for code in (STARTS[RUN], NEEDED):
            _seconds(code, environment)
        yield partial(_seconds, environment=environment)


def _seconds(code: str, environment: dict[str, str]) -> tuple[float, float]:
    with TemporaryDirectory() as folder:
        before, began = _processor(), perf_counter()
        subprocess.run([sys.executable, "-c", code, folder], stdout=subprocess.DEVNULL, env=environment, check=True)  # noqa: S603
        wall = perf_counter() - began
    return wall, _processor() - before


def _processor() -> float:
    """Seconds of the processor that ended processes took; os.times has hundredths only."""
    taken = resource.getrusage(resource.RUSAGE_CHILDREN)
    return taken.ru_utime + taken.ru_stime
