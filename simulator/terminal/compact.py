"""Prints tables as narrow as possible, and in parts if they are still too wide for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.table import Table as Grid

from longspan.simulator.base.tables import Table
from longspan.simulator.base.terminal import as_line
from longspan.simulator.terminal.console import Console
from longspan.simulator.terminal.printed_tables import draw_heatmap, print_list

__all__ = ["assign_letters", "print_compact"]

GAP: Final = 2
"""The number of characters between two columns."""

SHORT: Final = 12
"""The longest name, in characters, that needs no letter."""


def assign_letters(names: Sequence[str]) -> dict[str, str]:
    """Return a letter for each name, such as an agent's. Return an empty dict if all names are short."""
    if all(cell_len(name) <= SHORT for name in names):
        return {}
    return {name: _letter(number) for number, name in enumerate(names)}


def _letter(number: int) -> str:
    """Return column letters as in a spreadsheet: A to Z, then AA to AZ, and so on."""
    return (_letter(number // 26 - 1) if number >= 26 else "") + chr(ord("A") + number % 26)


def print_compact(console: Console, table: Table, called: Mapping[str, str]) -> None:
    """Print a table, with each name in `called` replaced by its letter.

    A value shared by all rows is printed once. Columns that do not fit next to the others are printed below them.
    """
    table = _rename_cells(draw_heatmap(table), called)
    table, same = _drop_constant_columns(table)
    console.print(f"\n{as_line(table.title)}", style="bold")
    if same:
        console.print(as_line(f"The same in every row: {'; '.join(same)}."), style="dim")
    widths = _widths(table)
    if table.heads or (len(widths) > 1 and widths[0] + GAP + max(widths[1:]) > console.width):
        print_list(console, table)
    else:
        for number, part in enumerate(_parts(table, widths, console.width)):
            console.print(*([""] if number else []), _grid(part), sep="\n")
    if table.note:
        console.print(table.note, style="dim")


def _rename_cells(table: Table, called: Mapping[str, str]) -> Table:
    columns = [_name(head, called) for head in table.columns]
    return table.model_copy(update={"columns": columns, "rows": [[called.get(cell, cell) for cell in row] for row in table.rows]})


def _name(head: str, called: Mapping[str, str]) -> str:
    """Return a column's heading. A name with a letter at its start, alone or before a comma, is replaced by the letter."""
    found = next((name for name in called if head == name or head.startswith(f"{name}, ")), "")
    return called[found] + head.removeprefix(found) if found else head


def _drop_constant_columns(table: Table) -> tuple[Table, list[str]]:
    """Return the table without columns that have the same value in all rows (two or more), and lines with these values."""
    columns = list(zip(table.columns, *table.rows, strict=True))
    same = [number > 0 and len(table.rows) > 1 and len(set(column[1:])) == 1 for number, column in enumerate(columns)]
    if not any(same) or sum(same) == len(same) - 1:
        return table, []
    said = [f"{name}: {cell or 'nothing'}" for (name, cell, *_), once in zip(columns, same, strict=True) if once]
    return _only(table, [number for number, once in enumerate(same) if not once]), said


def _only(table: Table, columns: Sequence[int]) -> Table:
    rows = [[row[number] for number in columns] for row in table.rows]
    return table.model_copy(update={"columns": [table.columns[number] for number in columns], "rows": rows, "shades": None})


def _widths(table: Table) -> list[int]:
    """Return the width of each column so that no cell is broken, and headings only between words."""
    columns = zip(table.columns, *table.rows, strict=True)
    return [max(map(cell_len, [*head.split(), *cells]), default=0) for head, *cells in columns]


def _parts(table: Table, widths: Sequence[int], width: int) -> Iterator[Table]:
    """Yield parts of the table that fit, each with the first column."""
    columns, room = [0], width - widths[0]
    for number, wanted in enumerate(widths[1:], 1):
        if room < GAP + wanted:
            yield _only(table, columns)
            columns, room = [0], width - widths[0]
        columns.append(number)
        room -= GAP + wanted
    yield _only(table, columns)


def _grid(table: Table) -> Grid:
    grid = Grid(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for name, right, width in zip(table.columns, table.numeric, _widths(table), strict=True):
        grid.add_column(name, justify="right" if right else "left", width=width, overflow="fold", vertical="bottom")
    for row in table.rows:
        grid.add_row(*row)
    return grid
