"""Append-only files with one JSON object per line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, final

from longspan.simulator.errors import JournalError, one_line

__all__ = ["JsonLines", "cut_torn"]


@final
class JsonLines:
    """A file of JSON lines. It need not exist yet. An incomplete last line, left by a crash, is ignored."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, *entries: dict[str, Any]) -> None:
        """Append entries and sync them to disk. Raises JournalError if they cannot be written or the file is a link."""
        text = "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)
        try:
            if self.path.is_symlink():
                raise JournalError(f"{self.path}: is a symbolic link; longspan does not write through links")
            if self.path.exists():
                cut_torn(self.path)
            with self.path.open("ab") as file:
                file.write(text.encode("utf-8", "backslashreplace"))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise JournalError(f"{self.path}: cannot be written: {error.strerror}") from error

    def read(self) -> list[Any]:
        """Return all entries; none if there is no file. Raises JournalError for a line that is not JSON."""
        if not self.path.exists():
            return []
        try:
            *lines, _ = self.path.read_bytes().split(b"\n")
        except OSError as error:
            raise JournalError(f"{self.path}: cannot be read: {error.strerror}") from error
        entries = []
        for number, line in enumerate(lines, 1):
            try:
                entries.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise JournalError(f"{self.path}, line {number}: not JSON: {one_line(error)}") from error
        return entries

    def objects(self) -> list[dict[str, Any]]:
        """Return the entries that are objects. Raises JournalError as `read` does."""
        return [entry for entry in self.read() if isinstance(entry, dict)]


def cut_torn(path: Path) -> bool:
    """Cut off an incomplete last line, left by a crash. Return whether there was one."""
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    if end < len(content):
        os.truncate(path, end)
    return end < len(content)
