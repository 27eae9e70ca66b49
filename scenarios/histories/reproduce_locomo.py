"""`longspan locomo reproduce`: accuracies of released answers, against the published and the corrected gold answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from pathlib import Path
from typing import Any, Final

from longspan.scenarios.histories.accuracies import accuracy_cells, accuracy_table, agreement_cells, tables_of_agreement
from longspan.scenarios.histories.data_files import Source, find_near
from longspan.scenarios.histories.locomo import KINDS
from longspan.scenarios.histories.locomo_answers import (
    EXPECTED,
    Gold,
    is_audit,
    is_gold,
    is_graded,
    read_answers,
    read_corrections,
    read_gold,
)
from longspan.scenarios.histories.released_answers import OVERALL, ReleasedAnswer, ReleasedFile, collect_files, unknown_form
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.tables import Table
from longspan.simulator.results.papers import Cell, Reproduction, Rules

__all__ = ["reproduce"]

PAPER: Final = "locomo"
WITH_ADVERSARIAL: Final = "overall with adversarial"
ASKED: Final = 1540
"""Number of LoCoMo's questions without adversarial ones."""
ALL: Final = 1986

DENOMINATORS: Final = ("answered", "of 1540", "of 1986", "adversarial above the line only")


def reproduce(paths: Sequence[Path], rules: Rules) -> Reproduction:
    """Compute accuracies by category from released answers with verdicts: files, or folders and archives of files.

    Each row is a file. The tables:

    - accuracy
    - corrected: without the questions whose gold answer is wrong according to the audit
    - wrong gold: only those questions
    - ceiling: the share of questions with a right gold answer
    - denominators
    - agreement

    `rules` have no effect, because judges gave the verdicts. The audit (`errors.json`), and LoCoMo's own file (`locomo10.json`) for
    grades without categories, are also looked for in the answers' folder and its parent. Raises InputError for files in another format.
    """
    values = {name: (source, source.json()) for name, source in collect_files(paths).items()}
    found = [*values.values()]
    wanted = {"errors.json": is_audit} | ({"locomo10.json": is_gold} if any(is_graded(value) for _, value in found) else {})
    beside = [find_near(paths, name) for name, is_such in wanted.items() if not any(is_such(value) for _, value in found)]
    found += [each for each in beside if each]
    gold = next((read_gold(source, value) for source, value in found if is_gold(value)), None)
    audit = next((frozenset(read_corrections(source, value)) for source, value in found if is_audit(value)), frozenset())
    files = list(_read_released(paths, values, gold))
    cells = [cell for released in files for cell in _cells(released, audit)] + list(agreement_cells(PAPER, files))
    return Reproduction(cells=cells, tables=list(_tables(cells, files, audit, [each[0].where for each in beside if each])))


def _read_released(paths: Sequence[Path], values: Mapping[str, tuple[Source, Any]], gold: Gold | None) -> Iterator[ReleasedFile]:
    named = {str(path) for path in paths}
    count = 0
    for name, (source, value) in values.items():
        if is_gold(value) or is_audit(value):
            continue
        released = read_answers(name, source, value, gold)
        if released is not None:
            count += 1
            yield released
        elif source.where in named:
            raise unknown_form(source, value, EXPECTED)
    if not count:
        raise InputError("no file has answers to LoCoMo's questions with verdicts; pass files of released answers")


def _cells(released: ReleasedFile, audit: frozenset[str]) -> Iterator[Cell]:
    asked = [answer for answer in released.answers if not answer.adversarial]
    trick = [answer for answer in released.answers if answer.adversarial]
    kinds = sorted({answer.kind for answer in released.answers} - {""})
    columns: dict[str, Sequence[ReleasedAnswer]] = {OVERALL: asked}
    if trick:
        columns[WITH_ADVERSARIAL] = released.answers
    columns |= {kind: [answer for answer in released.answers if answer.kind == kind] for kind in kinds}
    yield from accuracy_cells(PAPER, "accuracy", released, columns)
    if audit and asked:
        good = {
            column: [answer for answer in answers if answer.question not in audit and not answer.adversarial]
            for column, answers in columns.items()
            if column != WITH_ADVERSARIAL
        }
        bad = [answer for answer in asked if answer.question in audit]
        yield from accuracy_cells(PAPER, "corrected", released, good)
        yield from accuracy_cells(PAPER, "wrong gold", released, {OVERALL: bad})
        yield _cell(released, "ceiling", OVERALL, 1 - len(bad) / len(asked), len(asked))
    yield from _denominators(released, asked, trick)


def _denominators(released: ReleasedFile, asked: Sequence[ReleasedAnswer], trick: Sequence[ReleasedAnswer]) -> Iterator[Cell]:
    """Yield the accuracies that result from the same verdicts with each denominator in use."""
    right, tricked = (fsum(answer.score for answer in answers) for answers in (asked, trick))
    figures = {"answered": (right, len(asked)), "of 1540": (right, ASKED)}
    if trick:
        figures |= {"of 1986": (right + tricked, ALL), "adversarial above the line only": (right + tricked, ASKED)}
    yield from (_cell(released, "denominators", column, above / below, below) for column, (above, below) in figures.items() if below)


def _cell(released: ReleasedFile, table: str, column: str, ours: float, n: int) -> Cell:
    return Cell(paper=PAPER, table=table, row=released.name, column=column, ours=round(ours, 6), n=n)


def _tables(cells: Sequence[Cell], files: Sequence[ReleasedFile], audit: frozenset[str], used: Sequence[str]) -> Iterator[Table]:
    names = {str(number): f" ({kind})" for number, kind in KINDS.items()}
    note = f"Adversarial questions are not in {OVERALL!r}. Intervals allow for questions of a conversation being alike."
    yield accuracy_table("Against the published gold answers", "accuracy", cells, names, note)
    if any(cell.table == "corrected" for cell in cells):
        where = f" Found next to the answers: {', '.join(used)}." if used else ""
        left = f"Without the {len(audit)} questions whose gold answer the audit finds wrong"
        note = f"{left}, because these answers were not judged against the corrected ones.{where}"
        yield accuracy_table("Where the gold answer is right", "corrected", cells, names, note)
        yield _wrong_gold(cells)
    else:
        yield Table(title="Corrected gold answers", columns=["missing"], rows=[["name the audit, errors.json, too"]])
    yield _denominators_table(cells, files)
    yield from tables_of_agreement(cells)


def _wrong_gold(cells: Sequence[Cell]) -> Table:
    ceilings = {cell.row: cell.ours or 0 for cell in cells if cell.table == "ceiling"}
    overall = {cell.row: cell.ours or 0 for cell in cells if (cell.table, cell.column) == ("accuracy", OVERALL)}
    passed = {cell.row: cell for cell in cells if cell.table == "wrong gold"}
    rows = [
        [
            row,
            f"{overall[row]:.4f}",
            f"{ceiling:.4f}",
            f"{passed[row].ours:.4f}" if row in passed else "",
            f"{passed[row].n if row in passed else 0}",
        ]
        for row, ceiling in ceilings.items()
    ]
    note = "The ceiling is the score of perfect answers, if a judge goes by the published gold answers."
    return Table(
        title="Wrong gold answers", columns=["file", "accuracy", "ceiling", "right by a wrong gold answer", "n"], rows=rows, note=note
    )


def _denominators_table(cells: Sequence[Cell], files: Sequence[ReleasedFile]) -> Table:
    found = {(cell.row, cell.column): f"{cell.ours:.4f}" for cell in cells if cell.table == "denominators"}
    rows = []
    for released in files:
        trick = sum(answer.adversarial for answer in released.answers)
        counts = [f"{len(released.answers) - trick}", f"{trick}"]
        rows.append([released.name, *counts, *(found.get((released.name, column), "") for column in DENOMINATORS)])
    note = "The same verdicts with each denominator in use; unanswered questions count as wrong for 1540 and 1986."
    return Table(title="Denominators", columns=["file", "answers", "adversarial", *DENOMINATORS], rows=rows, note=note)
