"""Tables at the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from simulator.report.excerpts import visible
from simulator.tables import Table

__all__ = ["print_table"]


def print_table(console: Console, table: Table) -> None:
    """Print a table: a grid, or where it has heads each row as a line and, below it, what is too long for one."""
    console.print(f"\n{visible(table.title)}", style="bold", markup=False)
    if table.heads:
        for row in table.rows:
            console.print(Text(visible(" · ".join(row[: table.heads]))))
            for column, value in list(zip(table.columns, row, strict=True))[table.heads :]:
                console.print(Text(visible(f"    {column}: {value}")))
    else:
        grid = Grid()
        for column, right in zip(table.columns, table.numeric, strict=True):
            grid.add_column(Text(visible(column)), overflow="fold", justify="right" if right else "left")
        for row in table.rows:
            grid.add_row(*(Text(visible(cell)) for cell in row))
        console.print(grid)
    if table.note:
        console.print(Text(visible(table.note)), style="dim")
