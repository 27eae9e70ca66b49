"""Closes resources before the interpreter exits, and collects what could not be closed.

Once Python 3.12 begins to exit, it starts no more threads. So resources that need a thread to close must be closed earlier.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable
from typing import Final

from longspan.simulator.base.terminal import complain

__all__ = ["end_all", "end_before_exit", "report_failure", "take_failures"]

_ends: Final[list[Callable[[], None]]] = []
_failures: Final[list[str]] = []


def end_before_exit(end: Callable[[], None]) -> None:
    """Register a function for `end_all` to call. It must tolerate several calls."""
    if not _ends:
        # For programs that import longspan. A command calls `end_all` itself, while it can still choose its exit code.
        atexit.register(end_all)
    _ends.append(end)


def end_all() -> None:
    """Call all registered functions."""
    for end in _ends:
        end()


def report_failure(problem: str) -> None:
    """Print a resource that could not be closed, once. The command then exits with code 1, even if its work is done."""
    if problem not in _failures:
        _failures.append(problem)
        complain(f"longspan: {problem}")


def take_failures() -> list[str]:
    """Return the reported failures, and clear them."""
    failures = _failures[:]
    _failures.clear()
    return failures
