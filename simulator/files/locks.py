"""Locks on folders, each held by one process at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Final

from longspan.simulator.base.errors import InputError, JournalError
from longspan.simulator.files.folders import open_file

__all__ = ["LOCK", "is_lock", "is_locked", "locked"]

LOCK: Final = ".lock"
"""The file inside a folder that is locked."""

LOOKS: Final = 1000
"""How often to try for a lock again, a millisecond apart, while other processes are checking whether it is held."""

_held: set[int] = set()
"""File handles of the locks that this process holds. A forked child must not keep them once this process has ended."""


def _close_all() -> None:
    for handle in _held:
        os.close(handle)
    _held.clear()


os.register_at_fork(after_in_child=_close_all)


@contextmanager
def locked(folder: Path, what: str) -> Iterator[int]:
    """Lock a folder, and yield the lock's file handle. The lock ends when the last process with this handle ends.

    `what` names the folder's content in errors. Raises InputError if another process holds the lock or if the folder was moved or deleted
    before the lock was taken, and JournalError if the lock's file is not a regular file.
    """
    try:
        with open_file(folder / LOCK, "ab") as file:
            handle = os.dup(file.fileno())
    except OSError as error:
        raise InputError(f"{folder}: cannot be written to: {error.strerror}") from error
    _held.add(handle)
    try:
        if not _acquired(handle):
            raise InputError(f"{folder}: another process is playing this {what}; wait until it ends")
        if not is_lock(handle, folder):
            raise InputError(f"{folder}: it was moved or deleted meanwhile")
        yield handle
    finally:
        _held.discard(handle)
        os.close(handle)


def is_lock(handle: int, folder: Path) -> bool:
    """Return whether a file handle belongs to the lock's file now in the folder: if not, a different folder was locked."""
    try:
        return os.path.samestat(os.fstat(handle), (folder / LOCK).lstat())
    except OSError:
        return False


def is_locked(folder: Path) -> bool:
    """Return whether a process holds the folder's lock. If the lock's file is not a regular file nobody does, because `locked` refuses
    it."""
    try:
        with open_file(folder / LOCK, "rb") as file:
            return not _tried(file.fileno(), fcntl.LOCK_SH)
    except (OSError, JournalError):
        return False


def _acquired(handle: int) -> bool:
    """Take the lock unless another process holds it. A process that only checks the lock holds a shared one for a moment."""
    for _ in range(LOOKS):
        if _tried(handle, fcntl.LOCK_EX):
            return True
        if not _tried(handle, fcntl.LOCK_SH):
            return False
        fcntl.flock(handle, fcntl.LOCK_UN)
        sleep(0.001)
    return False


def _tried(handle: int, how: int) -> bool:
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
