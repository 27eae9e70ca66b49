"""Append-only files with one JSON object per line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, final

from longspan.simulator.errors import JournalError, one_line
from longspan.simulator.folders import open_file, read_file

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
            if self.path.exists():
                cut_torn(self.path)
            with open_file(self.path, "ab") as file:
                file.write(text.encode("utf-8", "backslashreplace"))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise JournalError(f"{self.path}: cannot be written: {error.strerror}") from error

    def read(self) -> list[Any]:
        """Return all entries; none if there is no file. Raises JournalError for a line that is not JSON."""
        try:
            *lines, _ = read_file(self.path).split(b"\n")
        except FileNotFoundError:
            return []
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
    with open_file(path, "r+b") as file:
        content = file.read()
        end = content.rfind(b"\n") + 1
        if end < len(content):
            file.truncate(end)
    return end < len(content)
