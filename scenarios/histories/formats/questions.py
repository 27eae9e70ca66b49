"""Read a file of questions about a log: JSON, JSON lines, or a table with a header."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any, Final

from longspan.scenarios.histories.data_files import blame_value
from longspan.scenarios.histories.formats.assembly import Asked
from longspan.scenarios.histories.formats.log_files import Found, read_values
from longspan.scenarios.histories.formats.own import NamedQuestion
from longspan.simulator.base.errors import InputError

__all__ = ["read_named", "read_questions"]

LISTS: Final = ("evidence", "options", "rubric")
"""Columns with several values, separated by a bar."""
FALSE: Final = ("false", "no", "0")


def read_questions(path: Path, notes: set[str]) -> Iterator[tuple[str, Asked]]:
    """Yield each question of a file with the conversation that it names. Raises InputError, naming the line at fault."""
    for where, question in read_named(path, notes):
        yield question.conversation, question.asked(where)


def read_named(path: Path, notes: set[str]) -> Iterator[tuple[str, NamedQuestion]]:
    """Yield each question of a file with its place. Raises InputError, naming the line at fault."""
    count = 0
    for found in read_values(path, notes):
        for where, value in _rows(found) if found.text else _items(found):
            with blame_value(where):
                if not isinstance(value, dict) or "question" not in value:
                    raise ValueError('must be a question such as {"question": "...", "answer": "..."}')
                question = NamedQuestion.model_validate(value)
            count += 1
            yield where, question
    if not count:
        raise InputError(f"{path}: has no questions")


def _items(found: Found) -> Iterator[tuple[str, Any]]:
    if isinstance(found.value, list):
        yield from ((f"{found.where}, item {number}", item) for number, item in enumerate(found.value, 1))
    else:
        yield found.where, found.value


def _rows(found: Found) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of a table as questions. Empty cells count as absent."""
    separator = max(",;\t", key=found.value.partition("\n")[0].count)
    try:
        rows = list(csv.DictReader(StringIO(found.value, newline=""), delimiter=separator, strict=True))
    except csv.Error as error:
        raise InputError(f"{found.where}: not a CSV table: {error}") from None
    for number, row in enumerate(rows, 2):
        where = f"{found.where}, row {number}"
        if None in row or None in row.values():
            raise InputError(f"{where}: has more or fewer cells than the header")
        given: dict[str, Any] = {key.strip().casefold(): cell.strip() for key, cell in row.items() if cell.strip()}
        given |= {key: [each.strip() for each in given[key].split("|")] for key in LISTS if key in given}
        if "answerable" in given:
            given["answerable"] = given["answerable"].casefold() not in FALSE
        yield where, given
