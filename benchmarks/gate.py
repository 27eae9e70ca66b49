"""A quick check whether something has become twice as slow: ratios that are similar on any machine, compared with baselines.json.

python -m benchmarks gate            prints them, and fails where one has doubled
python -m benchmarks gate --keep     makes them the baselines
"""

from __future__ import annotations

import json
import os
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from benchmarks._played import STUB, medians

__all__ = ["OPTIONS", "SPAN", "doubled", "measure", "ratios"]

SPAN: Final = 120_000
TRIES: Final = 5
"""How often everything is measured at most while a ratio looks doubled: other work on the machine only adds time."""
BASELINE_RUNS: Final = 5
"""How many processes a baseline is the median of."""

BASELINES: Final = Path(__file__).parent / "baselines.json"

OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "--keep": {"action": "store_true", "help": "store the measurements as the new baselines"},
}


def measure(span: int, *, keep: bool) -> dict[str, float]:
    """Return the ratios. Exits with an error if one is more than twice its baseline."""
    if keep:
        measured = ratios(span, BASELINE_RUNS)
        BASELINES.write_text(json.dumps({name: round(value, 3) for name, value in measured.items()}, indent=1) + "\n", "utf-8")
        return measured
    measured, worse = doubled(span)
    if worse:
        raise SystemExit(f"more than twice as slow as the baselines in {BASELINES.name}: {', '.join(worse)}")
    return measured


def doubled(span: int = SPAN) -> tuple[dict[str, float], list[str]]:
    """Return the best ratios of up to TRIES attempts, and the names of those more than twice their baselines in all of them."""
    baselines: dict[str, float] = json.loads(BASELINES.read_text("utf-8"))
    best: dict[str, float] = {}
    worse: list[str] = []
    for _ in range(TRIES):
        latest = ratios(span)
        best = {name: min(value, best.get(name, value)) for name, value in latest.items()}
        worse = [name for name, value in best.items() if value > 2 * baselines[name]]
        if not worse:
            break
    return best, worse


def ratios(span: int, runs: int = 1) -> dict[str, float]:
    """Return the ratios, medians of `runs` processes.

    They are CPU time for playing, for a model and for a report, in passes of the tokenizer over the same text; for four times as
    many tests; for a whole process that plays 2k, against what it imports of others; and bytes written for each byte of the
    conversation.
    """
    os.environ.setdefault("OPENAI_API_KEY", "sk-nothing")
    instant = medians(span, agent="silent", runs=runs)
    stub = medians(span, agent=f"{STUB}openai/some-model?context=32k&base_url=http://127.0.0.1:1/v1", runs=runs)
    few, many = medians(2_000, 3, "silent", runs), medians(2_000, 12, "silent", runs)
    return {
        "playing / tokenizer pass": instant["cpu / tokenizer pass"],
        "model / tokenizer pass": stub["cpu / tokenizer pass"],
        "report / tokenizer pass": instant["report cpu s"] / instant["tokenizer pass s"],
        "12 / 3 tests": many["cpu s"] / few["cpu s"],
        "2k run / imports": import_module("benchmarks.import").run_to_imports(runs),
        "written / transcript": instant["written / transcript"],
        "model: written / transcript": stub["written / transcript"],
    }
