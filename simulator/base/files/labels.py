"""Reads human labels from a CSV file with a header or a JSON lines file, plain or gzipped."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, Final, final

from longspan.simulator.base.errors import InputError, one_line
from longspan.simulator.base.files.file_io import parse_json, read_packed

__all__ = ["Row", "read_rows"]

MAX_BYTES: Final = 1 << 28
"""The maximum size of an uncompressed file in bytes."""

MAX_CHARACTERS: Final = 10_000_000
"""The most characters in a CSV value. The csv module's default is too low for a long reply."""


@final
class Row(dict[str, Any]):
    """A row, as a mapping from columns to values. `where` is its file and line, for error messages."""

    where: str = ""

    def number(self, column: str) -> float:
        """Return the number in a column. Booleans count as 1 and 0. Raises InputError for anything else."""
        value = self[column]
        if isinstance(value, str) and value.strip().casefold() in ("true", "false", "yes", "no"):
            return float(value.strip().casefold() in ("true", "yes"))
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = float("nan")
        if not isfinite(number):
            raise InputError(f"{self.where}: {column} must be a number, true or false; got {value!r:.60}")
        return number

    def text(self, column: str) -> str:
        """Return the string in a column. Raises InputError for anything else."""
        value = self[column]
        if not isinstance(value, str):
            raise InputError(f"{self.where}: {column} must be text; got {value!r:.60}")
        return value


def read_rows(path: Path, columns: Sequence[str]) -> list[Row]:
    """Return the rows of a file. Raises InputError if it cannot be read or has no rows, or if a row lacks a column."""
    text = _text(path)
    lines = _json_lines(path, text) if text.lstrip().startswith("{") else _csv(path, text)
    rows = []
    for number, value in lines:
        row = Row(value)
        row.where = f"{path}, line {number}"
        if missing := [column for column in columns if row.get(column) is None]:
            raise InputError(f"{row.where}: {missing[0]} is missing; a row needs {', '.join(columns)}")
        rows.append(row)
    if not rows:
        raise InputError(f"{path}: has no rows; a row needs {', '.join(columns)}")
    return rows


def _text(path: Path) -> str:
    try:
        return read_packed(path, MAX_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: cannot be read: {one_line(error)}") from error


def _json_lines(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        value = parse_json(line, f"{path}, line {number}")
        if not isinstance(value, dict):
            raise InputError(f"{path}, line {number}: expected an object, got {type(value).__name__}")
        yield number, value


def _csv(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    previous_limit = csv.field_size_limit(MAX_CHARACTERS)
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        rows = [(reader.line_num, {str(key): value for key, value in row.items() if key is not None}) for row in reader]
    except csv.Error as error:
        raise InputError(f"{path}: not CSV: {one_line(error)}") from error
    finally:
        csv.field_size_limit(previous_limit)
    yield from rows
