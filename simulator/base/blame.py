"""Errors raised by other people's code, in agents and scenarios: who is to blame, and which line raised them."""

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
    """Return whether the code that was called is to blame for an exception, of whatever class.

    It is not to blame for interruptions from outside: Trio's cancellation, or a person's Ctrl-C, which a signal handler raises in the main
    thread. One such exception in a group clears the whole group.
    """
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_fault, error.exceptions))
    if isinstance(error, KeyboardInterrupt):
        return not _is_ctrl_c(error)
    return not isinstance(error, trio.Cancelled)


def _is_ctrl_c(error: KeyboardInterrupt) -> bool:
    if not trio.lowlevel.in_trio_run():  # Python's own handler leaves no trace
        return threading.current_thread() is threading.main_thread()
    modules = [module for module, _, _ in _frames(error.__traceback__)]
    return modules[-1:] == [] or modules[-1].partition(".")[0] == "trio"


def at_line(error: BaseException, code: object = None) -> str:
    """Return " (FILE:LINE)" for the line that raised an exception. The file is given by its name alone, so that the result is the same on
    every machine.

    With `code`, a class, this is the last line that lies in the same folder as the class. Empty if no file took part.
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
