"""longspan reproduce: published figures again, from published data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from simulator.papers import Table

__all__ = ["reproduce"]

WIDTH = 160
"""Columns of a line where the output is no terminal."""


def reproduce(
    paper: Annotated[str, typer.Argument(help="Whose figures: goodai-ltm.", metavar="PAPER")],
    paths: Annotated[list[Path], typer.Argument(help="The published files or folders.", metavar="PATH...")],
    rules: Annotated[
        Literal["paper", "longspan"], typer.Option(help="Grade as the paper does, or by longspan's own rules, which ask for more.")
    ] = "paper",
    json_: Annotated[bool, typer.Option("--json", help="Print a JSON list of cells and nothing else.")] = False,
) -> int:
    """Work published figures out again from recorded data, and print ours beside theirs. No model is asked."""
    import json

    from rich.console import Console

    from simulator.errors import InputError
    from simulator.papers import paper as find

    known = find(paper)
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: there is no such file or folder; name the files that came with the paper")
    found = known(paths, rules)
    if json_:
        print(json.dumps([cell.model_dump() for cell in found.cells], ensure_ascii=False, indent=1))
        return 0
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    for table in found.tables:
        console.print(f"\n{table.title}", style="bold", markup=False)
        if table.heads:
            _print_listed(console, table)
        else:
            _print_table(console, table)
    return 0


def _print_table(console: Console, table: Table) -> None:
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid()
    for column in table.columns:
        grid.add_column(column, overflow="fold")
    for row in table.rows:
        grid.add_row(*map(Text, row))
    console.print(grid)


def _print_listed(console: Console, table: Table) -> None:
    """Each row as a line and, below it, what is too long for one."""
    from rich.text import Text

    for row in table.rows:
        console.print(Text(" · ".join(row[: table.heads])))
        for column, value in list(zip(table.columns, row, strict=True))[table.heads :]:
            console.print(Text(f"    {column}: {value}"))
