"""Append-only files with one JSON object per line, each with a checksum. The first line names the file's owner."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, final

from longspan.simulator.base.errors import DamageError, JournalError
from longspan.simulator.base.files.checksums import SEAL_LENGTH, ChecksumError, RunningSum
from longspan.simulator.base.files.folders import open_file, read_file
from longspan.simulator.base.files.owners import Owner

__all__ = ["JsonLines", "cut_torn"]

REMEDY: Final = "restore the file from a copy, or move it away"

MAX_BYTES: Final = 2**30
"""The largest file that is read, in bytes."""

OWNER: Final = "of"
"""The field of the first line that names the owner."""

BLOCK: Final = 2**16
"""The number of bytes to read in one step from the end of a file."""


@dataclass(slots=True)
class _End:
    """The end of an open file: the checksum of its lines so far. `begins` is set if the file has no lines."""

    file: BinaryIO
    running: RunningSum
    begins: bool


@final
class JsonLines:
    """A file of JSON lines, which may not exist yet. An incomplete last line, left by a crash, is ignored.

    `owner` is the run or conversation that the file belongs to. Every method raises JournalError if the file belongs to another. With None,
    the owner is neither written nor checked.
    """

    def __init__(self, path: Path, owner: Owner | None = None) -> None:
        self.path = path
        self._owner = owner
        self._keeps = False
        self._end: _End | None = None

    def append(self, *entries: dict[str, Any], sync: bool = True) -> None:
        """Append entries, which must not be empty, and sync them to disk unless `sync` is False.

        Raises JournalError if they cannot be written, if the file is a link, or if its last line has no checksum.
        """
        end = self._end or self._open_end()
        try:
            if end.begins and self._owner is not None and (named := self._owner.named) is not None:
                entries = ({OWNER: named} | entries[0], *entries[1:])
            end.file.write(b"".join(end.running.seal(_fields(entry)) for entry in entries))
            end.file.flush()
            if sync:
                os.fsync(end.file.fileno())
            end.begins = False
        except OSError as error:
            self._keeps = False  # the file may end with half a line
            with suppress(OSError):  # closing tries to write the rest again
                end.file.close()
            raise JournalError(f"{self.path}: cannot be written: {error.strerror}") from error
        finally:
            self._end = end if self._keeps else None
            if not self._keeps:
                end.file.close()

    @contextmanager
    def keep_open(self) -> Iterator[None]:
        """Keep the file open between appends. No other process may write to it in the meantime."""
        self._keeps = True
        try:
            yield
        finally:
            self._keeps = False
            if self._end is not None:
                self._end.file.close()
                self._end = None

    def _open_end(self) -> _End:
        """Open the file after its last complete line."""
        try:
            running, begins = RunningSum(), True
            if self.path.exists():
                cut_torn(self.path)
                begins = not self._follow(running)
            return _End(open_file(self.path, "ab"), running, begins)
        except OSError as error:
            raise JournalError(f"{self.path}: cannot be written: {error.strerror}") from error

    def _follow(self, running: RunningSum) -> bool:
        """Continue the checksum after the last line. Return whether the file has a line."""
        with open_file(self.path, "rb") as file:
            first = file.readline(MAX_BYTES)
            last, _ = _last_line(file)
        if last:
            with suppress(ValueError, RecursionError):  # `read` reports a line that is not JSON
                self._check_owner(json.loads(first))
        try:
            if last:
                running.follow(last)
        except ChecksumError as error:
            raise DamageError(self.path, read_file(self.path, MAX_BYTES).count(b"\n"), str(error), REMEDY) from None
        return bool(last)

    def _check_owner(self, first: Any) -> None:
        """Remove the owner from the first line, and check it."""
        found = first.pop(OWNER, None) if isinstance(first, dict) else None
        if self._owner is not None:
            self._owner.check(found, self.path, REMEDY)

    def read(self) -> list[dict[str, Any]]:
        """Return all entries, or an empty list without a file. Raises DamageError if a line was changed after it was written."""
        try:
            *lines, _ = read_file(self.path, MAX_BYTES).split(b"\n")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise JournalError(f"{self.path}: cannot be read: {error.strerror}") from error
        running = RunningSum()
        entries = []
        for number, line in enumerate(lines, 1):
            fields = line[: 1 - SEAL_LENGTH]
            try:
                running.check(line + b"\n", fields)
                entries.append(json.loads(fields + b"}"))
            except ChecksumError as error:
                raise DamageError(self.path, number, str(error), REMEDY) from None
            except (ValueError, RecursionError) as error:
                raise DamageError(self.path, number, "not JSON", REMEDY) from error
        if entries:
            self._check_owner(entries[0])
        return entries


def cut_torn(path: Path) -> bool:
    """Cut off an incomplete last line, which a crash may leave. Return whether there was one."""
    with open_file(path, "r+b") as file:
        _, end = _last_line(file)
        torn = end < file.seek(0, os.SEEK_END)
        if torn:
            file.truncate(end)
    return torn


def _last_line(file: BinaryIO) -> tuple[bytes, int]:
    """Return a file's last complete line (or b"") and the offset of its end. Reads only the end of the file."""
    start = size = file.seek(0, os.SEEK_END)
    tail = b""
    while start and tail.count(b"\n") < 2:
        start = max(0, start - max(BLOCK, len(tail)))
        file.seek(start)
        tail = file.read(size - start)
    end = tail.rfind(b"\n") + 1
    return tail[tail.rfind(b"\n", 0, max(0, end - 1)) + 1 : end], start + end


def _fields(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":"))[:-1].encode("utf-8", "backslashreplace")
