"""CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any, Final

__all__ = ["write_csv"]

FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""The first characters of strings that a spreadsheet reads as formulas."""


def write_csv(file: IO[str], columns: Sequence[str], rows: Iterable[Mapping[str, Any]], *, head: bool = True) -> None:
    """Write rows as RFC 4180 CSV, with a header of `columns` if `head`. Missing values and None are empty cells.

    A string that a spreadsheet would read as a formula gets a leading apostrophe, since agents may write such strings; other formats leave
    strings unchanged. Numbers are rounded to six decimals. Booleans are true and false.
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
