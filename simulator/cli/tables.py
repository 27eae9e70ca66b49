"""Tables at the terminal."""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from simulator.report.excerpts import visible
from simulator.tables import Table

__all__ = ["print_table"]

WIDE: Final = 10
"""Shaded columns of a table that is printed as it is; more of them are drawn."""

BLOCKS: Final = "·░▒▓█"
"""How shades from 0 to 1 are drawn."""


def print_table(console: Console, table: Table) -> None:
    """Print a table: a grid, or where it has heads each row as a line and, below it, what is too long for one."""
    console.print(f"\n{visible(table.title)}", style="bold", markup=False)
    if table.heads:
        for row in table.rows:
            console.print(Text(visible(" · ".join(row[: table.heads]))))
            for column, value in list(zip(table.columns, row, strict=True))[table.heads :]:
                console.print(Text(visible(f"    {column}: {value}")))
    else:
        drawn = _drawn(table)
        grid = Grid()
        for column, right in zip(drawn.columns, drawn.numeric, strict=True):
            grid.add_column(Text(visible(column)), overflow="fold", justify="right" if right else "left")
        for row in drawn.rows:
            grid.add_row(*(Text(visible(cell)) for cell in row))
        console.print(grid)
        if drawn is not table:
            console.print(Text(f"From {BLOCKS[0]} for 0 to {BLOCKS[-1]} for 1."), style="dim")
    if table.note:
        console.print(Text(visible(table.note)), style="dim")


def _drawn(table: Table) -> Table:
    """A wide heatmap with one column in place of its shaded ones, a character for each; any other table as it is."""
    if table.shades is None:
        return table
    shaded = [any(shade is not None for shade in column) for column in zip(*table.shades, strict=True)]
    if sum(shaded) <= WIDE:
        return table
    first, last = shaded.index(True), len(shaded) - shaded[::-1].index(True)
    rows = [
        [*row[:first], "".join(map(_block, shades[first:last])), *row[last:]] for row, shades in zip(table.rows, table.shades, strict=True)
    ]
    columns = [*table.columns[:first], f"{table.columns[first]} to {table.columns[last - 1]}", *table.columns[last:]]
    return Table(title=table.title, columns=columns, rows=rows)


def _block(shade: float | None) -> str:
    return " " if shade is None else BLOCKS[round(shade * (len(BLOCKS) - 1))]
