"""`longspan longmemeval reproduce`: accuracies of released answers by kind of question, and how far judges agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from longspan.scenarios.histories.accuracies import accuracy_cells, accuracy_table, agreement_cells, tables_of_agreement
from longspan.scenarios.histories.longmemeval_answers import EXPECTED, GoldQuestion, questions_in, read_answers, value_of
from longspan.scenarios.histories.released_answers import OVERALL, ReleasedAnswer, ReleasedFile, collect_files, unknown_form
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.tables import Table
from longspan.simulator.results.papers import Cell, Reproduction, Rules

__all__ = ["reproduce"]

PAPER: Final = "longmemeval"
ASKED: Final = 500
"""Number of LongMemEval's questions."""


def reproduce(paths: Sequence[Path], rules: Rules) -> Reproduction:
    """Compute accuracies by category from released answers with verdicts: files, or folders and archives of files.

    Each row is a file: rows with `correct`, or the JSON lines with `autoeval_label` that the authors' evaluation writes. The latter lack
    the kinds of questions, so pass a file with the questions too. Tables: `accuracy`, `denominators`, `agreement`. `rules` have no
    effect. Raises InputError for files in another format.
    """
    values = {name: (source, value_of(source)) for name, source in collect_files(paths).items()}
    asked: dict[str, GoldQuestion] = {}
    for _, value in values.values():
        asked |= questions_in(value)
    named = {str(path) for path in paths}
    files = []
    for name, (source, value) in values.items():
        if (released := read_answers(name, source.where, value, asked)) is not None:
            files.append(released)
        elif source.where in named and not questions_in(value):
            raise unknown_form(source, value, EXPECTED)
    if not files:
        raise InputError("no file has answers to LongMemEval's questions with verdicts; pass files of released answers")
    cells = [cell for released in files for cell in _cells(released)] + list(agreement_cells(PAPER, files))
    return Reproduction(cells=cells, tables=list(_tables(cells, files)))


def _cells(released: ReleasedFile) -> Iterator[Cell]:
    columns: dict[str, Sequence[ReleasedAnswer]] = {OVERALL: released.answers}
    for kind in sorted({answer.kind for answer in released.answers} - {""}):
        columns[kind] = [answer for answer in released.answers if answer.kind == kind]
    yield from accuracy_cells(PAPER, "accuracy", released, columns)
    right, answered = sum(answer.score for answer in released.answers), len(released.answers)
    for column, below in (("answered", answered), ("of 500", ASKED)):
        yield Cell(paper=PAPER, table="denominators", row=released.name, column=column, ours=round(right / below, 6), n=below)


def _tables(cells: Sequence[Cell], files: Sequence[ReleasedFile]) -> Iterator[Table]:
    note = "Questions without an answer in the history are in 'overall', as the authors count."
    yield accuracy_table("Against the published gold answers", "accuracy", cells, {}, note)
    found = {(cell.row, cell.column): f"{cell.ours:.4f}" for cell in cells if cell.table == "denominators"}
    rows = [[each.name, f"{len(each.answers)}", *(found[each.name, column] for column in ("answered", "of 500"))] for each in files]
    note = "The same verdicts with each denominator; for 500, unanswered questions count as wrong."
    yield Table(title="Denominators", columns=["file", "answers", "answered", "of 500"], rows=rows, note=note)
    yield from tables_of_agreement(cells)
