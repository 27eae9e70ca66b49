"""Tables at the terminal."""

from __future__ import annotations

import io

from rich.console import Console

from simulator.cli.tables import print_table
from simulator.tables import Table


def printed(table: Table) -> list[str]:
    console = Console(file=io.StringIO(), width=100)
    print_table(console, table)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue().splitlines()


def test_a_wide_heatmap_is_drawn_a_character_for_each_cell() -> None:
    shades: list[list[float | None]] = [[None, *[0.0, 0.25, 0.5, 0.75, 1.0] * 2, 0.1, 0.9, None]]
    columns = ["context", *map(str, range(1, 13)), "mean"]
    lines = printed(Table(title="Found", columns=columns, rows=[["4,000", *["x"] * 12, "0.500"]], shades=shades))
    assert "│ context │ 1 to 12      │  mean │" in lines[3].replace("┃", "│")
    assert lines[5] == "│ 4,000   │ ·░▒▓█·░▒▓█·█ │ 0.500 │"
    assert lines[-1] == "From · for 0 to █ for 1."


def test_a_narrow_one_is_printed_with_its_figures() -> None:
    lines = printed(Table(title="Found", columns=["a", "b"], rows=[["x", "0.5"]], shades=[[None, 0.5]]))
    assert "│ x │ 0.5 │" in lines
