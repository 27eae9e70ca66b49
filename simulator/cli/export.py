"""longspan export: export runs as tables or logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from longspan.simulator.cli.compare import RunsArgument
from longspan.simulator.cli.plot import print_unusable
from longspan.simulator.terminal import say

__all__ = ["export"]


def export(
    runs: RunsArgument,
    format: Annotated[Literal["csv", "jsonl", "parquet", "inspect"], typer.Option(help="The format.")],
    out: Annotated[Path, typer.Option(help="The folder to create.", metavar="DIR")],
) -> int:
    """Export the tests and turns of runs.

    Writes two tables, or with --format inspect logs for Inspect AI's viewer. Damaged and unfinished runs are named and left out.
    """
    from longspan.simulator.analysis.export import export as write
    from longspan.simulator.analysis.graded_runs import load

    loaded, unusable = load(runs)
    damaged = write(loaded, format, out)
    print_unusable([*unusable, *damaged])
    say(f"{out}: {len(loaded) - len(damaged)} runs")
    return 0
