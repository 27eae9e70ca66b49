"""Attributes errors raised in agents and scenarios: whose fault they are, and which line raised them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import trio

from longspan.simulator.base.hard_exit import HardExitError

__all__ = ["at_line", "is_fault"]


def is_fault(error: BaseException) -> bool:
    """Return whether an exception of any class is the fault of the code that was called.

    Interruptions from outside are not: Trio's cancellation, and Ctrl-C, which a signal handler raises in the main thread. A group of
    exceptions that contains an interruption is not a fault either.
    """
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_fault, error.exceptions))
    if isinstance(error, KeyboardInterrupt):
        return not _is_ctrl_c(error)
    return not isinstance(error, trio.Cancelled)


def _is_ctrl_c(error: KeyboardInterrupt) -> bool:
    if not trio.lowlevel.in_trio_run():  # Python's own signal handler leaves no frame in the traceback
        return threading.current_thread() is threading.main_thread()
    modules = [module for module, _, _ in _frames(error.__traceback__)]
    return modules[-1:] == [] or modules[-1].partition(".")[0] == "trio"


def at_line(error: BaseException, code: object = None) -> str:
    """Return " (FILE:LINE)" for the line that raised an exception. FILE has no folder, so that the result is the same on every machine.

    `code` is a class: the line is then the last one in a file in the same folder as the class. Returns "" if no file was involved.
    """
    found = _frames(error.__traceback__)
    frames = [(path, line) for module, path, line in found if not path.startswith("<") and module != HardExitError.__module__]
    source = getattr(sys.modules.get(getattr(code, "__module__", "")), "__file__", None)
    own = [(path, line) for path, line in frames if source and Path(path).parent == Path(source).parent]
    for path, line in (own or frames)[-1:]:
        return f" ({Path(path).name}:{line})"
    return ""


def _frames(trace: TracebackType | None) -> Iterator[tuple[str, str, int]]:
    """Yield the module, file and line of each frame that an exception passed through, innermost last."""
    while trace is not None:
        frame = trace.tb_frame
        yield str(frame.f_globals.get("__name__", "")), frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
