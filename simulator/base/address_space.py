"""Checks that the system's limit on memory is large enough for a run."""

from __future__ import annotations

import sys
from typing import Final

from longspan.simulator.base.errors import InputError

__all__ = ["check_room", "free_address_space"]

LEAST: Final = 400 * 2**20
"""The address space in bytes that the smallest run needs, including space that its libraries only reserve. With less, some libraries kill
the process, or wait forever for a thread that could not start."""


def free_address_space() -> int | None:
    """Return the process's limit of address space in bytes, or None without a limit."""
    if sys.platform == "win32":
        return None
    from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit

    limit, _ = getrlimit(RLIMIT_AS)
    return None if limit == RLIM_INFINITY else limit


def check_room() -> None:
    """Raise InputError if the process's limit of memory is too low for any run."""
    limit = free_address_space()
    if limit is not None and limit < LEAST:
        raise InputError(
            f"the memory of this process is limited to {limit // 2**20:,} MiB (ulimit -v), and any run takes {LEAST // 2**20}: "
            f"raise it, for example with `ulimit -v {2 * LEAST // 2**10}`"
        )
