"""Locks on folders. Only one process at a time can hold a folder's lock."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Final

from longspan.simulator.base.errors import InputError, JournalError
from longspan.simulator.base.files.folders import open_file

__all__ = ["LOCK", "is_lock", "is_locked", "lock_folder"]

LOCK: Final = ".lock"
"""The name of the lock file inside a folder."""

LOOKS: Final = 1000
"""The number of attempts to take a lock, a millisecond apart, while other processes only check it."""

_held: set[int] = set()
"""File handles of the locks that this process holds. A forked child closes them: otherwise it would hold the lock after this process
ends."""


def _close_all() -> None:
    for handle in _held:
        os.close(handle)
    _held.clear()


os.register_at_fork(after_in_child=_close_all)


@contextmanager
def lock_folder(folder: Path, what: str) -> Iterator[int]:
    """Lock a folder, and yield the lock's file handle. The lock lasts until the last process with this handle ends.

    `what` names the folder's content in errors. Raises InputError if another process holds the lock, or if the folder was moved or deleted
    before the lock was taken. Raises JournalError if the lock file is not a regular file.
    """
    try:
        with open_file(folder / LOCK, "ab") as file:
            handle = os.dup(file.fileno())
    except OSError as error:
        raise InputError(f"{folder}: cannot be written to: {error.strerror}") from error
    _held.add(handle)
    try:
        if not _acquire(handle):
            raise InputError(f"{folder}: another process is playing this {what}; wait until it ends")
        if not is_lock(handle, folder):
            raise InputError(f"{folder}: it was moved or deleted meanwhile")
        yield handle
    finally:
        _held.discard(handle)
        os.close(handle)


def is_lock(handle: int, folder: Path) -> bool:
    """Return whether a file handle belongs to the folder's current lock file. If not, another folder was locked."""
    try:
        return os.path.samestat(os.fstat(handle), (folder / LOCK).lstat())
    except OSError:
        return False


def is_locked(folder: Path) -> bool:
    """Return whether a process holds the folder's lock. If the lock file is not a regular file, none does: `lock_folder` refuses it."""
    try:
        with open_file(folder / LOCK, "rb") as file:
            return not _try_lock(file.fileno(), fcntl.LOCK_SH)
    except (OSError, JournalError):
        return False


def _acquire(handle: int) -> bool:
    """Take the lock unless another process holds it. A process that only checks it holds a shared lock for a moment."""
    for _ in range(LOOKS):
        if _try_lock(handle, fcntl.LOCK_EX):
            return True
        if not _try_lock(handle, fcntl.LOCK_SH):
            return False
        fcntl.flock(handle, fcntl.LOCK_UN)
        sleep(0.001)
    return False


def _try_lock(handle: int, how: int) -> bool:
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
