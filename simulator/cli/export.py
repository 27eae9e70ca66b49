"""longspan export: export runs as tables or logs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Literal, get_args

import typer

from longspan.simulator.base.terminal import say
from longspan.simulator.cli.options import RunsArgument
from longspan.simulator.cli.plot import print_unusable
from longspan.simulator.cli.runs import TrustOption, open_run

__all__ = ["export"]

Table = Literal["csv", "jsonl", "parquet"]

TABLES: Final[tuple[Table, ...]] = get_args(Table)
"""The formats of tables. Each is also a file suffix."""


def export(
    runs: RunsArgument,
    out: Annotated[Path, typer.Option(help="The folder to create, or a .csv, .jsonl or .parquet file.", metavar="PATH")],
    format: Annotated[
        Literal["csv", "jsonl", "parquet", "inspect", "dataset"] | None, typer.Option(help="The format.", show_default="from --out")
    ] = None,
    trust: TrustOption = False,
) -> int:
    """Export the tests and turns of runs.

    Writes two tables by default. --format inspect writes logs for Inspect AI's viewer. --format dataset writes the user's messages, to
    play them elsewhere; this may need --trust for a run from elsewhere. Damaged and unfinished runs are listed and left out.
    """
    from longspan.simulator.base.errors import InputError
    from longspan.simulator.results.analysis.export import export_runs
    from longspan.simulator.results.graded_runs import load_runs
    from longspan.simulator.running.dataset import export_datasets

    named: Table | None = next((known for known in TABLES if out.suffix.lower() == f".{known}"), None)
    format = format or named
    if format is None or (named is not None and format != named):
        raise InputError(f"--out {out}: name the format with --format, or as the file's ending, one of .{', .'.join(TABLES)}")
    loaded, unusable = load_runs(runs)
    if format == "dataset":
        damaged = export_datasets([replace(run, manifest=open_run(run.folder.path, trust).manifest) for run in loaded], out)
    else:
        damaged = export_runs(loaded, format, out)
    print_unusable([*unusable, *damaged])
    say(f"{out}: {(written := len(loaded) - len(damaged)):,} run{'s' * (written != 1)}")
    return 0
