"""Reads the events of a journal that is still being written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, final

from longspan.simulator.base.errors import JournalError
from longspan.simulator.base.files.owners import Owner
from longspan.simulator.base.files.packed import is_packed, open_journal
from longspan.simulator.journal import events
from longspan.simulator.journal.journal_lines import JournalLines

__all__ = ["MAX_LINES", "JournalTail"]

MAX_LINES: Final = 200
"""The most lines that one call of `JournalTail.read` reads."""

MAX_FOLLOWED_BYTES: Final = 64 * 2**20
"""The longest line that is followed, in bytes."""


@final
class JournalTail:
    """Follows a journal that is being written, from its beginning. `owner` is as for `JournalLines`."""

    def __init__(self, path: Path, owner: Owner | None = None) -> None:
        self._path = path
        self._offset = 0
        self._lines = JournalLines(path, owner)

    def read(self) -> list[events.Event]:
        """Return the next events, at most MAX_LINES, or an empty list if there is no new complete line.

        Raises JournalError for a damaged journal, and for the journal of another run or conversation.
        """
        try:
            if not self._path.exists():
                return []
            if not is_packed(self._path) and (size := self._path.stat().st_size) <= self._offset:
                if size == self._offset:
                    return []
                raise JournalError(f"{self._path.name}: became shorter while it was being followed")
            return list(self._events())
        except OSError as error:
            raise JournalError(f"{self._path.name}: cannot be read: {error.strerror}") from error

    def _events(self) -> Iterator[events.Event]:
        with open_journal(self._path) as file:
            file.seek(self._offset)
            for _ in range(MAX_LINES):
                line = file.readline(MAX_FOLLOWED_BYTES)
                if not line.endswith(b"\n"):
                    if len(line) == MAX_FOLLOWED_BYTES:
                        raise JournalError(f"{self._path.name}: line {self._lines.seq + 1} is too long to be followed")
                    return
                yield self._lines.read(line)
                self._offset += len(line)
