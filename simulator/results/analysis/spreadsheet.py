"""CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any, Final

__all__ = ["write_csv"]

SKIPPED: Final = r"[\x00-\x20\x7f-\xa0\xad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff\";]*"
"""Matches white space, control characters, quotes and separators, which a spreadsheet may strip before it reads a formula."""

FORMULA: Final = "[=+\\-@＝＋－＠]"
"""Matches the first character of a formula."""

LEADING: Final = re.compile(rf"[\t\r\n]|{SKIPPED}{FORMULA}")
"""Matches the start of a string that is a formula, or that could be one once its start is stripped."""

INNER: Final = re.compile(rf"([\t-\r\x85\u2028\u2029;]{SKIPPED})({FORMULA}?)")
"""Matches a place inside a string where a spreadsheet may begin a cell, and the start of a formula there, if any.

If the list separator is `;`, Excel ignores quotes inside a cell, so a line break begins a cell as well. The formula is optional so that a
long run of white space is matched only once. The report's tests.js has the same patterns.
"""

NUMBER: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


def write_csv(file: IO[str], columns: Sequence[str], rows: Iterable[Mapping[str, Any]], *, head: bool = True) -> None:
    """Write rows as RFC 4180 CSV, with a header of `columns` if `head`. Missing values and None are empty cells.

    A string that a spreadsheet would read as a formula gets an apostrophe in front, since agents may write such strings. Other formats
    leave strings unchanged. Numbers are rounded to six decimals. Booleans are true and false.
    """
    writer = csv.writer(file)
    if head:
        writer.writerow(map(_cell, columns))
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
        case int():
            return str(value)
        case _:
            return _neutralize(str(value))


def _neutralize(text: str) -> str:
    """Return the string with an apostrophe before anything that a spreadsheet would read as a formula. A number is not a formula."""
    if NUMBER.fullmatch(text):
        return text
    marked = f"'{text}" if LEADING.match(text) else text
    return INNER.sub(lambda found: f"{found[1]}'{found[2]}" if found[2] else found[0], marked)
