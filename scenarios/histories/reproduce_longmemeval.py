"""`longspan reproduce longmemeval`: accuracies of released answers by kind of question, and how far judges agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, final

from pydantic import Field

from longspan.scenarios.histories.longmemeval import ABSTENTION
from longspan.scenarios.histories.sources import Published, Source, wrong
from longspan.scenarios.histories.verdicts import (
    OVERALL,
    Answer,
    Released,
    accuracies,
    agreements,
    checked,
    collect,
    table,
    tables_of_agreement,
    unknown,
)
from longspan.simulator.errors import InputError
from longspan.simulator.interop.papers import Cell, Reproduction, Rules
from longspan.simulator.tables import Table

__all__ = ["reproduce"]

PAPER: Final = "longmemeval"
ASKED: Final = 500
"""LongMemEval's questions."""


@final
class _Row(Published):
    question_id: str = Field(min_length=1)
    category: str
    correct: bool
    hypothesis: str = ""


@final
class _Label(Published):
    label: bool


@final
class _Evaluated(Published):
    question_id: str = Field(min_length=1)
    hypothesis: str
    autoeval_label: _Label


def reproduce(paths: Sequence[Path], rules: Rules) -> Reproduction:
    """Compute accuracies by category from released answers with verdicts: files, or folders and archives with them.

    Rows with `correct`, or the lines with `autoeval_label` that the authors' evaluation writes: for their kinds, name a file with the
    questions too. Tables: `accuracy`, `denominators`, `agreement`. A row is a file. `rules` make no difference. Raises InputError for
    files that are not as released.
    """
    values = {name: (source, _value(source)) for name, source in collect(paths).items()}
    kinds: dict[str, str] = {}
    for _, value in values.values():
        kinds |= _kinds(value)
    named = {str(path) for path in paths}
    files = []
    for name, (source, value) in values.items():
        if (released := _released(name, source.where, value, kinds)) is not None:
            files.append(released)
        elif source.where in named and not _kinds(value):
            raise unknown(source, value, "rows with question_id and correct")
    if not files:
        raise InputError("none of the files has answers to LongMemEval's questions with verdicts; name released answers")
    cells = [cell for released in files for cell in _cells(released)] + list(agreements(PAPER, files))
    return Reproduction(cells=cells, tables=list(_tables(cells, files)))


def _value(source: Source) -> Any:
    """Return the JSON value of a file, or the list of its lines' values."""
    with suppress(InputError):
        return source.json()
    return [value for _, value in source.lines()]


def _kinds(value: Any) -> dict[str, str]:
    """Return the kinds of the questions in a file of questions: the authors' own, or one with the same under other names."""
    found = {}
    for each in value if isinstance(value, list) else ():
        if not isinstance(each, dict):
            return {}
        meta = each.get("meta") if isinstance(each.get("meta"), dict) else {}
        id, kind = each.get("question_id", each.get("id")), each.get("question_type", (meta or {}).get("question_type"))
        if not (isinstance(id, str) and isinstance(kind, str)):
            return {}
        found[id] = "abstention" if id.endswith(ABSTENTION) else kind
    return found


def _released(name: str, where: str, value: Any, kinds: Mapping[str, str]) -> Released | None:
    first = value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else {}
    if first.keys() >= {"question_id", "correct"}:
        return Released(name, checked(where, _rows(where, value)), {})
    if first.keys() >= {"question_id", "autoeval_label"}:
        return Released(name, checked(where, _evaluated(where, value, kinds)), {})
    return None


def _rows(where: str, value: list[Any]) -> Iterator[Answer]:
    for number, each in enumerate(value):
        with wrong(f"{where}, row {number}"):
            row = _Row.model_validate(each)
        yield Answer(row.question_id, row.question_id, row.category, {"correct": row.correct}, row.hypothesis)


def _evaluated(where: str, value: list[Any], kinds: Mapping[str, str]) -> Iterator[Answer]:
    for number, each in enumerate(value):
        with wrong(f"{where}, row {number}"):
            row = _Evaluated.model_validate(each)
        kind = kinds.get(row.question_id, "")
        yield Answer(row.question_id, row.question_id, kind, {"autoeval_label": row.autoeval_label.label}, row.hypothesis)


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
