"""What has to end before the interpreter exits, and what failed when it was closed.

Once Python 3.12 begins to exit, it starts no thread, so anything that needs one to end has to end earlier.
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
    """Have `end_all` call a function, which may be called several times."""
    if not _ends:
        atexit.register(end_all)  # for programs that import longspan; a command calls it itself, while it can still choose its exit code
    _ends.append(end)


def end_all() -> None:
    """End everything that has to end before the interpreter exits."""
    for end in _ends:
        end()


def report_failure(problem: str) -> None:
    """Print what could not be closed, once. A command then exits with code 1, even if it has done its work."""
    if problem not in _failures:
        _failures.append(problem)
        complain(f"longspan: {problem}")


def take_failures() -> list[str]:
    """Return what was reported, and forget it."""
    failures = _failures[:]
    _failures.clear()
    return failures
