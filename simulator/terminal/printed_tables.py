"""Prints tables to the terminal."""

from __future__ import annotations

from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.table import Table as Grid

from longspan.simulator.base.tables import Table
from longspan.simulator.base.terminal import as_line
from longspan.simulator.terminal.console import Console

__all__ = ["cut_line", "draw_heatmap", "print_list", "print_table"]

MAX_SHADED: Final = 10
"""The most shaded columns that a heatmap shows as numbers. A wider heatmap uses characters."""

UNBROKEN: Final = 12
"""The longest cell, in characters, that is never folded."""

BLOCKS: Final = "·░▒▓█"
"""Characters for shades from 0 to 1."""


def cut_line(line: str, width: int) -> str:
    """Cut a line to `width` terminal columns. A cut line ends with an ellipsis."""
    return line if cell_len(line) <= width else f"{set_cell_size(line, width - 1).rstrip()}…"


def print_table(console: Console, table: Table) -> None:
    """Print a table as a grid. Print it as a list if its rows have headings, or if the grid does not fit."""
    console.print(f"\n{as_line(table.title)}", style="bold")
    if table.heads:
        print_list(console, table)
    else:
        shown = draw_heatmap(table)
        fitting = _fit_table(shown, console.width)
        if fitting is None:
            print_list(console, shown.model_copy(update={"heads": 1}))
        else:
            console.print(_grid(fitting))
        if shown is not table:
            console.print(f"From {BLOCKS[0]} for 0 to {BLOCKS[-1]} for 1.", style="dim")
    if table.note:
        console.print(table.note, style="dim")


def _grid(table: Table) -> Grid:
    grid = Grid()
    for cells, right, width in zip(zip(table.columns, *table.rows, strict=True), table.numeric, _widths(table), strict=True):
        whole = max(map(cell_len, cells)) <= width  # Rich would shrink such a column too, and still exceed the terminal
        grid.add_column(cells[0], overflow="fold", justify="right" if right else "left", min_width=width, no_wrap=whole)
    for row in table.rows:
        grid.add_row(*row)
    return grid


def print_list(console: Console, table: Table) -> None:
    """Print each row as a heading, from its first `heads` cells, and a line for each other cell."""
    heads = table.heads or 1
    for row in table.rows:
        console.print(as_line(" · ".join(row[:heads])))
        for column, value in list(zip(table.columns, row, strict=True))[heads:]:
            if value:
                console.print(as_line(f"    {column}: {value}"))


def _fit_table(table: Table, width: int) -> Table | None:
    """Return the table, or its transpose if only that fits into `width`, or None if neither fits without breaking words."""
    if _width(table) <= width or not table.rows:
        return table
    heads, *columns = zip(table.columns, *table.rows, strict=True)
    turned = Table(title=table.title, columns=list(heads), rows=[list(column) for column in columns])
    return turned if _width(turned) <= width else None


def _width(table: Table) -> int:
    """Return the table's minimum width in characters."""
    return sum(width + 3 for width in _widths(table)) + 1


def _widths(table: Table) -> list[int]:
    """Return each column's minimum width, in characters, that breaks no word and no short cell."""
    columns = zip(table.columns, *table.rows, strict=True)
    parts = ([part for cell in column for part in ([cell] if cell_len(cell) <= UNBROKEN else cell.split())] for column in columns)
    return [max(map(cell_len, pieces), default=0) for pieces in parts]


def draw_heatmap(table: Table) -> Table:
    """Replace the shaded columns of a wide heatmap with one column that has a character for each. Return other tables unchanged."""
    if table.shades is None:
        return table
    shaded = [any(shade is not None for shade in column) for column in zip(*table.shades, strict=True)]
    if sum(shaded) <= MAX_SHADED:
        return table
    first, last = shaded.index(True), len(shaded) - shaded[::-1].index(True)
    rows = [
        [*row[:first], "".join(map(_block, shades[first:last])), *row[last:]] for row, shades in zip(table.rows, table.shades, strict=True)
    ]
    columns = [*table.columns[:first], f"{table.columns[first]} to {table.columns[last - 1]}", *table.columns[last:]]
    return Table(title=table.title, columns=columns, rows=rows)


def _block(shade: float | None) -> str:
    return " " if shade is None else BLOCKS[round(shade * (len(BLOCKS) - 1))]
