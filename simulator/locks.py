"""Folder locks, each held by one process at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longspan.simulator.errors import InputError
from longspan.simulator.folders import open_file

__all__ = ["locked"]

_held: set[int] = set()
"""File handles of the locks that this process holds. A forked child must not keep them after this process ends."""


def _close_all() -> None:
    for handle in _held:
        os.close(handle)
    _held.clear()


os.register_at_fork(after_in_child=_close_all)


@contextmanager
def locked(folder: Path, what: str) -> Iterator[int]:
    """Lock a folder, and yield the lock's file handle. The lock ends when the last process that has the handle ends.

    `what` names the folder's content in errors. Raises InputError if another process holds the lock, JournalError if the
    lock's file is none.
    """
    try:
        with open_file(folder / ".lock", "ab") as file:
            handle = os.dup(file.fileno())
    except OSError as error:
        raise InputError(f"{folder}: cannot be written to: {error.strerror}") from error
    _held.add(handle)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{folder}: another process is playing this {what}; wait until it ends") from None
        yield handle
    finally:
        _held.discard(handle)
        os.close(handle)
