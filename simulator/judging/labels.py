"""People's labels: rows of a CSV file with a header, or of JSON lines; plain or in gzip."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, Final, final

from longspan.simulator.errors import InputError, one_line
from longspan.simulator.files import read_packed

__all__ = ["Row", "read_rows"]

LARGEST: Final = 1 << 28
"""Bytes of a file, unpacked, that are read at most."""

LONGEST: Final = 10_000_000
"""Characters of a value in a CSV file at most: the library's own limit is shorter than a long reply."""


@final
class Row(dict[str, Any]):
    """A row, by column. `where` says where it stands, for errors."""

    where: str = ""

    def number(self, column: str) -> float:
        """The number in a column; true and false are 1 and 0. Raises InputError for anything else."""
        value = self[column]
        if isinstance(value, str) and value.strip().casefold() in ("true", "false", "yes", "no"):
            return float(value.strip().casefold() in ("true", "yes"))
        try:
            found = float(value)
        except (TypeError, ValueError):
            found = float("nan")
        if not isfinite(found):
            raise InputError(f"{self.where}: {column} has to be a number, or true or false; got {value!r:.60}")
        return found

    def text(self, column: str) -> str:
        """The text in a column. Raises InputError for what is none."""
        value = self[column]
        if not isinstance(value, str):
            raise InputError(f"{self.where}: {column} has to be text; got {value!r:.60}")
        return value


def read_rows(path: Path, columns: Sequence[str]) -> list[Row]:
    """The rows of a file. Raises InputError where it cannot be read, has no rows, or one of them lacks a column."""
    text = _text(path)
    lines = _json_lines(path, text) if text.lstrip().startswith("{") else _csv(path, text)
    found = []
    for number, value in lines:
        row = Row(value)
        row.where = f"{path}, line {number}"
        if missing := [column for column in columns if row.get(column) is None]:
            raise InputError(f"{row.where}: there is no {missing[0]}; a row needs {', '.join(columns)}")
        found.append(row)
    if not found:
        raise InputError(f"{path}: holds no rows; a row needs {', '.join(columns)}")
    return found


def _text(path: Path) -> str:
    try:
        return read_packed(path, LARGEST).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: cannot be read: {one_line(error)}") from error


def _json_lines(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}, line {number}: not JSON: {one_line(error)}") from error
        if not isinstance(value, dict):
            raise InputError(f"{path}, line {number}: expected an object, got {type(value).__name__}")
        yield number, value


def _csv(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    before = csv.field_size_limit(LONGEST)
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        rows = [(reader.line_num, {str(key): value for key, value in row.items() if key is not None}) for row in reader]
    except csv.Error as error:
        raise InputError(f"{path}: not CSV: {one_line(error)}") from error
    finally:
        csv.field_size_limit(before)
    yield from rows
