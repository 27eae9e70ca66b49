"""`longspan reproduce longmemeval`: accuracies of released answers by kind of question, and how far judges agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from longspan.scenarios.histories.longmemeval_answers import EXPECTED, GoldQuestion, questions_in, read_answers, value_of
from longspan.scenarios.histories.verdicts import (
    OVERALL,
    Answer,
    Released,
    accuracies,
    agreements,
    collect,
    table,
    tables_of_agreement,
    unknown,
)
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.tables import Table
from longspan.simulator.exchange.papers import Cell, Reproduction, Rules

__all__ = ["reproduce"]

PAPER: Final = "longmemeval"
ASKED: Final = 500
"""LongMemEval's questions."""


def reproduce(paths: Sequence[Path], rules: Rules) -> Reproduction:
    """Compute accuracies by category from released answers with verdicts: files, or folders and archives with them.

    Rows with `correct`, or the lines with `autoeval_label` that the authors' evaluation writes: for their kinds, name a file with the
    questions too. Tables: `accuracy`, `denominators`, `agreement`. A row is a file. `rules` make no difference. Raises InputError for
    files that are not as released.
    """
    values = {name: (source, value_of(source)) for name, source in collect(paths).items()}
    asked: dict[str, GoldQuestion] = {}
    for _, value in values.values():
        asked |= questions_in(value)
    named = {str(path) for path in paths}
    files = []
    for name, (source, value) in values.items():
        if (released := read_answers(name, source.where, value, asked)) is not None:
            files.append(released)
        elif source.where in named and not questions_in(value):
            raise unknown(source, value, EXPECTED)
    if not files:
        raise InputError("none of the files has answers to LongMemEval's questions with verdicts; name released answers")
    cells = [cell for released in files for cell in _cells(released)] + list(agreements(PAPER, files))
    return Reproduction(cells=cells, tables=list(_tables(cells, files)))


def _cells(released: Released) -> Iterator[Cell]:
    columns: dict[str, Sequence[Answer]] = {OVERALL: released.answers}
    for kind in sorted({answer.kind for answer in released.answers} - {""}):
        columns[kind] = [answer for answer in released.answers if answer.kind == kind]
    yield from accuracies(PAPER, "accuracy", released, columns)
    right, answered = sum(answer.score for answer in released.answers), len(released.answers)
    for column, below in (("answered", answered), ("of 500", ASKED)):
        yield Cell(paper=PAPER, table="denominators", row=released.name, column=column, ours=round(right / below, 6), n=below)


def _tables(cells: Sequence[Cell], files: Sequence[Released]) -> Iterator[Table]:
    note = "Questions without an answer in the history are in 'overall', as the authors count."
    yield table("Against the published gold answers", "accuracy", cells, {}, note)
    found = {(cell.row, cell.column): f"{cell.ours:.4f}" for cell in cells if cell.table == "denominators"}
    rows = [[each.name, f"{len(each.answers)}", *(found[each.name, column] for column in ("answered", "of 500"))] for each in files]
    note = "The same verdicts with each denominator; of 500, questions that are not answered count as wrong."
    yield Table(title="Denominators", columns=["file", "answers", "answered", "of 500"], rows=rows, note=note)
    yield from tables_of_agreement(cells)
