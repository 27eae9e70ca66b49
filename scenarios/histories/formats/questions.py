"""Read a file of questions about a log: JSON, JSON lines, or a table with a header."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

from longspan.scenarios.histories.data_files import blame_value
from longspan.scenarios.histories.formats.assembly import Asked
from longspan.scenarios.histories.formats.log_files import Found, read_values
from longspan.scenarios.histories.formats.own import NamedQuestion
from longspan.scenarios.histories.formats.tables import read_cells
from longspan.simulator.base.errors import InputError

__all__ = ["read_named", "read_questions", "read_records"]

LISTS: Final = ("evidence", "options", "rubric")
"""Columns with several values, separated by a bar."""
BOOLEANS: Final = {"false": False, "no": False, "0": False, "true": True, "yes": True, "1": True}


def read_questions(path: Path, notes: set[str]) -> Iterator[tuple[str, Asked]]:
    """Yield each question of a file with the conversation that it names. Raises InputError, naming the line at fault."""
    for where, question in read_named(path, notes):
        yield question.conversation, question.asked(where)


def read_named(path: Path, notes: set[str]) -> Iterator[tuple[str, NamedQuestion]]:
    """Yield each question of a file with its place. Raises InputError, naming the line at fault."""
    count = 0
    for where, value in read_records(path, LISTS, notes):
        with blame_value(where):
            if not isinstance(value, dict) or "question" not in value:
                raise ValueError('must be a question such as {"question": "...", "answer": "..."}')
            if isinstance(answerable := value.get("answerable"), str):
                value["answerable"] = BOOLEANS.get(answerable.casefold(), answerable)
            question = NamedQuestion.model_validate(value)
        count += 1
        yield where, question
    if not count:
        raise InputError(f"{path}: has no questions")


def read_records(path: Path, lists: Collection[str], notes: set[str]) -> Iterator[tuple[str, Any]]:
    """Yield each JSON value or row of a table in a file with its place. Raises InputError.

    A row is an object by the names in the header. Empty cells count as absent. `lists`: columns with several values, separated by a bar.
    """
    for found in read_values(path, notes):
        if found.text:
            yield from _rows(found, lists)
        elif isinstance(found.value, list):
            yield from ((f"{found.where}, item {number}", item) for number, item in enumerate(found.value, 1))
        else:
            yield found.where, found.value


def _rows(found: Found, lists: Collection[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    separator = max(",;\t", key=found.value.partition("\n")[0].count)
    with blame_value(found.where):
        header, *rows = read_cells(found.value, separator)
    for number, row in enumerate(filter(None, rows), 2):
        where = f"{found.where}, row {number}"
        if len(row) != len(header):
            raise InputError(f"{where}: has more or fewer cells than the header")
        cells = dict(zip(header, row, strict=True))
        given: dict[str, Any] = {key.strip().casefold(): cell.strip() for key, cell in cells.items() if cell.strip()}
        given |= {key: [each.strip() for each in given[key].split("|")] for key in lists if key in given}
        yield where, given
