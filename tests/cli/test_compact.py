"""Comparisons at the terminal: narrow tables, and parts of those that are still too wide."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from tests.made_runs import made_run

from longspan.simulator.base.tables import Table
from longspan.simulator.cli import main
from longspan.simulator.terminal.compact import assign_letters, print_compact
from longspan.simulator.terminal.console import Console

AGENTS = ("openai/gpt-4o?context=16k", "ltm/openai/gpt-4o?context=16k&memory=json", "notebook", "silent")


def printed(table: Table, width: int, **called: str) -> list[str]:
    file = io.StringIO()
    print_compact(Console(file=file, width=width), table, called)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_what_is_the_same_in_every_row_is_a_sentence() -> None:
    table = Table(title="T", columns=["agent", "runs", "score", "cost"], rows=[["a", "3", "0.5", "–"], ["b", "3", "0.7", "–"]])
    assert printed(table, 40)[1:] == [
        "T",
        "The same in every row: runs: 3; cost: –.",
        "agent  score",
        "────────────",
        "a        0.5",
        "b        0.7",
    ]
    assert printed(Table(title="T", columns=["agent", "runs"], rows=[["a", "3"]]), 40)[2:] == ["agent  runs", "───────────", "a         3"]


def test_columns_that_do_not_fit_come_below_with_the_names_of_their_rows() -> None:
    table = Table(title="T", columns=["agent", "first", "second", "third"], rows=[["a", "1" * 9, "2" * 9, "3" * 9]])
    lines = printed(table, 30)
    assert [line.split() for line in lines if line.startswith("agent")] == [["agent", "first", "second"], ["agent", "third"]]
    wide = Table(title="T", columns=["agent", "first"], rows=[["a" * 20, "1" * 9], ["b" * 20, "2" * 9]])
    assert printed(wide, 30)[2:] == ["a" * 20, "    first: 111111111", "b" * 20, "    first: 222222222"]


def test_long_names_get_letters() -> None:
    assert assign_letters(["oracle", "notebook"]) == {}
    given = assign_letters([f"openai/model-{number}" for number in range(28)])
    table = Table(title="T", columns=["of", "long/name, 3 each"], rows=[["long/name", "0.5"]])
    assert " ".join(printed(table, 40, **{"long/name": "A"})).split() == ["T", "A,", "3", "of", "each", "─" * 8, "A", "0.5"]
    assert [given[f"openai/model-{number}"] for number in (0, 25, 26, 27)] == ["A", "Z", "AA", "AB"]


@pytest.mark.parametrize(("width", "longest"), [(60, 274), (80, 264)])  # at 60, the table of scores is in two parts
def test_a_comparison_fits_the_terminal(
    width: int, longest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for place, agent in enumerate(AGENTS):
        for span in (2_000, 32_000):
            made_run(tmp_path, agent, lambda scenario, number, place=place: (number + place) % 4 / 3, span=span)
    monkeypatch.setenv("COLUMNS", str(width))
    with pytest.raises(SystemExit):
        main(["compare", str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= width for line in lines)
    legend = dict(line.split("  ", 1) for line in lines if re.match(r"[A-D]  \S+$", line))
    assert (list(legend), sorted(legend.values())) == (["A", "B", "C", "D"], sorted(AGENTS))
    assert len(lines) <= longest
