"""CSV that a spreadsheet shows and does not run."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any, Final

__all__ = ["write_csv"]

FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""What a text begins with that a spreadsheet takes for a formula."""


def write_csv(file: IO[str], columns: Sequence[str], rows: Iterable[Mapping[str, Any]], *, head: bool = True) -> None:
    """Write rows, below a head of `columns` unless there is one; what a row lacks, or is None, is an empty cell. RFC 4180.

    A text that a spreadsheet would take for a formula gets an apostrophe before it, since agents write such texts too: who
    needs them unchanged has the other formats. Numbers are rounded to six digits after the point; bools are true and false.
    """
    writer = csv.writer(file)
    if head:
        writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(row.get(column)) for column in columns])


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case float():
            return repr(round(value, 6))
        case str():
            return f"'{value}" if value.startswith(FORMULA) else value
        case _:
            return str(value)
