"""Files of JSON objects, a line each, that only grow."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, final

from longspan.simulator.errors import JournalError, one_line

__all__ = ["JsonLines", "cut_torn"]


@final
class JsonLines:
    """A file of JSON lines, which need not exist yet. A last line that a crash tore does not count."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, *entries: dict[str, Any]) -> None:
        """Add entries; they are on disk afterwards. Raises JournalError where the disk refuses, or the file is a link."""
        text = "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)
        try:
            if self.path.is_symlink():
                raise JournalError(f"{self.path}: is a link; nothing is written to what lies elsewhere")
            if self.path.exists():
                cut_torn(self.path)
            with self.path.open("ab") as file:
                file.write(text.encode("utf-8", "backslashreplace"))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise JournalError(f"{self.path}: cannot be written: {error.strerror}") from error

    def read(self) -> list[Any]:
        """All entries; none where there is no file. Raises JournalError for a line that is not JSON."""
        if not self.path.exists():
            return []
        try:
            *lines, _ = self.path.read_bytes().split(b"\n")
        except OSError as error:
            raise JournalError(f"{self.path}: cannot be read: {error.strerror}") from error
        found = []
        for number, line in enumerate(lines, 1):
            try:
                found.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise JournalError(f"{self.path}, line {number}: not JSON: {one_line(error)}") from error
        return found

    def objects(self) -> list[dict[str, Any]]:
        """The entries that are objects. Raises JournalError as `read` does."""
        return [entry for entry in self.read() if isinstance(entry, dict)]


def cut_torn(path: Path) -> bool:
    """Cut off a last line that a crash tore. Returns whether there was one."""
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
    return whole < len(content)
