"""The events of a journal that is still being written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final, final

from pydantic import ValidationError

from longspan.simulator import events
from longspan.simulator.errors import JournalError, first_problem
from longspan.simulator.folders import open_file

__all__ = ["MAX_LINES", "JournalTail"]

MAX_LINES: Final = 200
"""Lines that one call of `JournalTail.read` reads at most."""

MAX_LINE_BYTES: Final = 64 * 2**20
"""A longer line, in bytes, cannot be an event."""


@final
class JournalTail:
    """Follows a journal that is being written, from its beginning."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._seq = 0

    def read(self) -> list[events.Event]:
        """Return the next events, at most MAX_LINES; none if there is no complete new line. Raises JournalError for a damaged journal."""
        try:
            if not self._path.exists() or self._path.stat().st_size == self._offset:
                return []
            if self._path.stat().st_size < self._offset:
                raise JournalError(f"{self._path.name}: became shorter while it was being followed")
            return list(self._events())
        except OSError as error:
            raise JournalError(f"{self._path.name}: cannot be read: {error.strerror}") from error

    def _events(self) -> Iterator[events.Event]:
        with open_file(self._path, "rb") as file:
            file.seek(self._offset)
            for _ in range(MAX_LINES):
                line = file.readline(MAX_LINE_BYTES)
                if not line.endswith(b"\n"):
                    if len(line) == MAX_LINE_BYTES:
                        raise JournalError(f"line {self._seq + 1} is longer than any event")
                    return
                yield self._parse(line)
                self._offset += len(line)
                self._seq += 1

    def _parse(self, line: bytes) -> events.Event:
        try:
            entry = json.loads(line)
            if not isinstance(entry, dict) or entry.pop("seq", None) != self._seq:
                raise JournalError(f"line {self._seq + 1}: expected an event with seq {self._seq}; the journal is damaged there")
            return events.parse(entry)
        except ValidationError as error:
            raise JournalError(f"line {self._seq + 1}: not an event: {first_problem(error)}") from None
        except (ValueError, RecursionError):
            raise JournalError(f"line {self._seq + 1}: not JSON; the journal is damaged there") from None
