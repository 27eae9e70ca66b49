"""Locks on folders, held by one process at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longspan.simulator.errors import InputError

__all__ = ["locked"]

_held: set[int] = set()
"""Handles of the locks this process holds. A process forked from it must not keep them when it dies."""


def _let_go() -> None:
    for handle in _held:
        os.close(handle)
    _held.clear()


os.register_at_fork(after_in_child=_let_go)


@contextmanager
def locked(folder: Path, what: str) -> Iterator[int]:
    """Hold a folder alone, with all processes that are given the handle: it is let go when the last of them ends.

    `what` lies there, for the error. Raises InputError where another process holds it.
    """
    try:
        handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written to: {error.strerror}") from error
    _held.add(handle)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{folder}: another process is playing this {what}; wait until it has ended") from None
        yield handle
    finally:
        _held.discard(handle)
        os.close(handle)
