"""longspan export: runs as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from longspan.simulator.cli.compare import RunsArgument
from longspan.simulator.cli.plot import tell_unusable

__all__ = ["export"]


def export(
    runs: RunsArgument,
    format: Annotated[Literal["csv", "jsonl", "parquet", "inspect"], typer.Option(help="What to write.")],
    out: Annotated[Path, typer.Option(help="The folder to make.", metavar="DIR")],
) -> int:
    """Write all tests and turns of runs as two tables, or as logs that Inspect AI's viewer opens.

    A run that is damaged or not finished is named and left out.
    """
    from longspan.simulator.analysis.export import export as write
    from longspan.simulator.analysis.graded_runs import load

    found, unusable = load(runs)
    damaged = write(found, format, out)
    tell_unusable([*unusable, *damaged])
    typer.echo(f"{out}: {len(found) - len(damaged)} runs")
    return 0
