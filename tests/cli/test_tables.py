"""Tables at the terminal."""

from __future__ import annotations

import io

import pytest

from longspan.simulator.base.tables import Table
from longspan.simulator.terminal.console import Console
from longspan.simulator.terminal.printed_tables import print_table


def printed(table: Table, width: int = 100) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
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


def test_a_table_that_is_too_wide_is_turned_so_that_words_stay_whole() -> None:
    columns = ["run", "coverage", "citation", "precision", "recall"]
    table = Table(title="Summaries", columns=columns, rows=[["notebook", "0.10", "0.20", "0.30", "0.40"]])
    assert "│ notebook │     0.10 │     0.20 │      0.30 │   0.40 │" in printed(table, 60)
    turned = printed(table, 40)
    assert "│ precision │     0.30 │" in turned
    assert all(any(column in line for line in turned) for column in columns)


def test_a_table_that_is_too_wide_either_way_is_listed_and_one_without_rows_has_its_head() -> None:
    words = ["a" * 30, "b" * 30]  # of the heading, and of the row
    lines = printed(Table(title="T", columns=words, rows=[words]), 66)
    assert lines[2:4] == ["a" * 30, f"    {'b' * 30}: {'b' * 30}"]
    assert any("x" in line for line in printed(Table(title="T", columns=["x" * 50], rows=[]), 100))


@pytest.mark.parametrize("width", [79, 80, 86])
def test_a_grid_is_no_wider_than_the_terminal(width: int) -> None:
    columns = ["agent", "span", "runs", "tests", "scored", "evidence distance", "of span", "cost per run, $"]
    lines = printed(
        Table(title="Tests", columns=columns, rows=[["notebook", "2k", "2", "60", "60", "1.2k (95–1.9k)", "60% (5–95)", ""]]), width
    )
    assert all(line[-1] in "┓┃┩│┘" for line in lines[2:]), "its right border is there"


def test_characters_that_take_two_places_count_twice() -> None:
    table = Table(title="Tests", columns=["agent", "score"], rows=[["記憶の長い会話", "0.50"]])
    assert "記憶の長い会話" in "".join(printed(table, 25)), "it is not broken"
