"""Tables at the terminal."""

from __future__ import annotations

from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.table import Table as Grid

from longspan.simulator.base.tables import Table
from longspan.simulator.base.terminal import as_line
from longspan.simulator.cli.console import Console

__all__ = ["cut", "drawn", "print_list", "print_table"]

MAX_SHADED: Final = 10
"""The most shaded columns that a heatmap shows as numbers. A wider one is drawn with characters."""

UNBROKEN: Final = 12
"""A cell of at most this many characters is never folded."""

BLOCKS: Final = "·░▒▓█"
"""Characters for shades from 0 to 1."""


def cut(line: str, width: int) -> str:
    """Cut a line to `width` terminal columns. A line that was cut ends in an ellipsis."""
    return line if cell_len(line) <= width else f"{set_cell_size(line, width - 1).rstrip()}…"


def print_table(console: Console, table: Table) -> None:
    """Print a table as a grid, or as a list if it has heads or does not fit."""
    console.print(f"\n{as_line(table.title)}", style="bold")
    if table.heads:
        print_list(console, table)
    else:
        shown = drawn(table)
        fitting = _fitting(shown, console.width)
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
        whole = max(map(cell_len, cells)) <= width  # rich would take from such a column too, and exceed the terminal
        grid.add_column(cells[0], overflow="fold", justify="right" if right else "left", min_width=width, no_wrap=whole)
    for row in table.rows:
        grid.add_row(*row)
    return grid


def print_list(console: Console, table: Table) -> None:
    """Print each row as a heading, made of its first `heads` cells, and a line for each other cell."""
    heads = table.heads or 1
    for row in table.rows:
        console.print(as_line(" · ".join(row[:heads])))
        for column, value in list(zip(table.columns, row, strict=True))[heads:]:
            if value:
                console.print(as_line(f"    {column}: {value}"))


def _fitting(table: Table, width: int) -> Table | None:
    """Return the table, transposed if only that fits into `width`, or None if neither fits without breaking words."""
    if _width(table) <= width or not table.rows:
        return table
    heads, *columns = zip(table.columns, *table.rows, strict=True)
    turned = Table(title=table.title, columns=list(heads), rows=[list(column) for column in columns])
    return turned if _width(turned) <= width else None


def _width(table: Table) -> int:
    """Return the minimum width of the table in characters."""
    return sum(width + 3 for width in _widths(table)) + 1


def _widths(table: Table) -> list[int]:
    """Return the smallest width of each column, in characters, that breaks no word or short cell."""
    columns = zip(table.columns, *table.rows, strict=True)
    parts = ([part for cell in column for part in ([cell] if cell_len(cell) <= UNBROKEN else cell.split())] for column in columns)
    return [max(map(cell_len, pieces), default=0) for pieces in parts]


def drawn(table: Table) -> Table:
    """Replace the shaded columns of a wide heatmap by one column with a character for each of them. Other tables stay as they are."""
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
