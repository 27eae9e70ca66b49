"""Tables of messages with named columns: CSV, with commas, semicolons or tabs."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from typing import Any, Final

from longspan.scenarios.histories.formats.messages import IDS, ROLES, THREADS, Context, LogFormat, Said
from longspan.scenarios.histories.formats.times import TIMES, is_day_first, parse_time

__all__ = ["CSV", "read_cells"]

COLUMNS: Final[Mapping[str, Sequence[str]]] = {
    "text": ("text", "content", "message", "body", "utterance", "value", "message_text", "message_body", "msg"),
    "role": ("role", "from", "sender_role", "author_role", "type"),
    "name": ("speaker", "author", "name", "sender", "username", "user_name", "user", "speaker_name", "sender_name", "author_name"),
    "time": tuple(key.casefold() for key in TIMES),
    "thread": (*(key.casefold() for key in THREADS), "thread", "conversation", "chat", "channel"),
    "id": tuple(key.casefold() for key in IDS),
}
csv.field_size_limit(1 << 27)  # the default is shorter than some messages


def _columns(line: str) -> tuple[str, dict[str, int]]:
    """Return the separator of a header, and the number of each column that it names."""
    separator = max(",;\t|", key=line.count)
    names = [name.strip().casefold().replace(" ", "_") for name in next(csv.reader([line], delimiter=separator), [])]
    if {"date", "time"} <= set(names):
        names[names.index("time")] = "clock"
    found = {what: next((names.index(key) for key in keys if key in names), -1) for what, keys in COLUMNS.items()}
    found["clock"] = names.index("clock") if "clock" in names else -1
    return separator, {what: number for what, number in found.items() if number >= 0}


def _is_table(text: Any) -> bool:
    columns = _columns(text.lstrip("\ufeff").partition("\n")[0])[1]
    return "text" in columns and not columns.keys().isdisjoint(("role", "name"))


def read_cells(text: str, separator: str) -> list[list[str]]:
    """Return the cells of a table by row. Raises ValueError."""
    try:
        return list(csv.reader(StringIO(text, newline=""), delimiter=separator, strict=True))
    except csv.Error as error:
        raise ValueError(f"not a CSV table: {error}") from None


def _read(text: str, context: Context) -> Iterator[Said]:
    separator, columns = _columns(text.partition("\n")[0])
    rows = read_cells(text, separator)[1:]
    times = [f"{_cell(row, columns, 'time')} {_cell(row, columns, 'clock')}".strip() for row in rows]
    day_first, _ = is_day_first(times)
    for number, (row, time) in enumerate(zip(rows, times, strict=True), 2):
        if not any(row):
            continue
        role, name = _cell(row, columns, "role"), _cell(row, columns, "name")
        meaning = ROLES.get(role.casefold(), "") or ("" if role else ROLES.get(name.casefold(), ""))
        meaning = meaning if meaning in ("user", "assistant", "system") else ""
        try:
            at = parse_time(time, day_first=day_first) if time else None
        except (ValueError, OverflowError, OSError):
            raise ValueError(f"row {number}: {time!r:.40} is not a time such as 2024-01-31T09:00") from None
        who = name if name.casefold() != meaning else ""
        thread, id = _cell(row, columns, "thread"), _cell(row, columns, "id")
        place = f"row {number}"
        yield Said(
            meaning,
            _cell(row, columns, "text"),
            name=who or ("" if meaning else role or "unknown"),
            at=at,
            thread=thread,
            id=id,
            place=place,
        )


def _cell(row: Sequence[str], columns: Mapping[str, int], what: str) -> str:
    number = columns.get(what, len(row))
    return row[number].strip() if number < len(row) else ""


CSV: Final = LogFormat(
    "csv",
    "tables with columns for role or speaker, text, and perhaps time, thread and id",
    "role,text\nuser,My cat is Olive.",
    _is_table,
    _read,
    text=True,
)
