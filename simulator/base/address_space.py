"""Checks that the system lets this process use enough memory for a run."""

from __future__ import annotations

import sys
from typing import Final

from longspan.simulator.base.errors import InputError

__all__ = ["check_room", "room"]

LEAST: Final = 400 * 2**20
"""The address space in bytes that the smallest run needs to be played and scored, including the space that its libraries reserve. With
less, some libraries end the process, or wait for ever for a thread that never began."""


def room() -> int | None:
    """Return the bytes of address space that the process may use, None if it is not limited."""
    if sys.platform == "win32":
        return None
    from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit

    limit, _ = getrlimit(RLIMIT_AS)
    return None if limit == RLIM_INFINITY else limit


def check_room() -> None:
    """Raise InputError if the process may use less memory than any run needs."""
    limit = room()
    if limit is not None and limit < LEAST:
        raise InputError(
            f"the memory of this process is limited to {limit // 2**20:,} MiB (ulimit -v), and any run takes {LEAST // 2**20}: "
            f"raise it, for example with `ulimit -v {2 * LEAST // 2**10}`"
        )
