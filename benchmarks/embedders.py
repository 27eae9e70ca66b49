"""How much evidence each embedder finds: needles of the suite `ltm` among the first memories of `memory/chroma`, by scenario."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any, Final

import trio

from longspan.simulator.base.errors import InputError, LongspanError
from longspan.simulator.base.terminal import complain
from longspan.simulator.running.planning import plan
from longspan.simulator.running.runner import play
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

__all__ = ["OPTIONS", "SPAN", "measure"]

SPAN: Final = 32_000
OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "--embedder": {"action": "append", "help": "an embedder, as in agent specs; give several. Default: hash and local"},
    "--first": {"type": int, "default": 10, "help": "how many memories are looked at"},
}


def measure(span: int, embedder: list[str] | None = None, first: int = 10) -> dict[str, float]:
    """Return the share of needles among the first memories, by embedder and scenario. One that is not at hand is left out."""
    figures = {}
    for name in embedder or ["hash", "local"]:
        try:
            found = _found(name, span, first)
        except InputError as error:
            complain(f"left out: {error}")
            continue
        figures |= {f"{name}, {scenario}": fmean(shares) for scenario, shares in sorted(found.items())}
        figures[f"{name}, all"] = fmean(share for shares in found.values() for share in shares)
    return figures


def _found(embedder: str, span: int, first: int) -> dict[str, list[float]]:
    """Return whether each needle that a question needs is found, by scenario."""
    agent = f"memory/chroma?embedder={embedder}&answerer=none&batch=turn&k={first}"
    with TemporaryDirectory() as folder:
        planned = plan(RunSettings(suite=load_suite("ltm"), span=span, seed=0, agent=agent), Path(folder))
        (outcome,) = trio.run(lambda: play([planned]))
        if outcome.error is not None:
            raise LongspanError(str(outcome.error))
        found: dict[str, list[float]] = defaultdict(list)
        for test in outcome.result.tests:
            found[test.scenario] += [float(pair.rank is not None) for pair in test.evidence]
    return {scenario: shares for scenario, shares in found.items() if shares}
