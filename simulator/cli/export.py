"""longspan export: export runs as tables or logs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from longspan.simulator.cli.options import RunsArgument
from longspan.simulator.cli.plot import print_unusable
from longspan.simulator.cli.runs import TrustOption, open_run
from longspan.simulator.terminal import say

__all__ = ["export"]


def export(
    runs: RunsArgument,
    format: Annotated[Literal["csv", "jsonl", "parquet", "inspect", "dataset"], typer.Option(help="The format.")],
    out: Annotated[Path, typer.Option(help="The folder to create.", metavar="DIR")],
    trust: TrustOption = False,
) -> int:
    """Export the tests and turns of runs.

    Writes two tables; with --format inspect logs for Inspect AI's viewer; with --format dataset the user's side, to play it elsewhere,
    for which a run from elsewhere may need --trust. Damaged and unfinished runs are named and left out.
    """
    from longspan.simulator.analysis.export import export as write
    from longspan.simulator.analysis.graded_runs import load
    from longspan.simulator.interop.dataset import export_datasets

    loaded, unusable = load(runs)
    if format == "dataset":
        damaged = export_datasets([replace(run, manifest=open_run(run.folder.path, trust).manifest) for run in loaded], out)
    else:
        damaged = write(loaded, format, out)
    print_unusable([*unusable, *damaged])
    say(f"{out}: {len(loaded) - len(damaged)} runs")
    return 0
