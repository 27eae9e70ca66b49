"""Errors of code that is not ours: agents' and scenarios'. Whose they are, and which line raised them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import trio

__all__ = ["at_line", "is_fault"]


def is_fault(error: BaseException) -> bool:
    """Return whether code that was called is to blame for an exception, of whatever class.

    It is not for what is done to that code: Trio's cancellation, and a person's Ctrl-C, which is raised in the main thread by a
    signal handler. In a group, one such exception suffices.
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
    """Return " (FILE:LINE)" for the line that raised an exception, with the file's name only: it is the same on every machine.

    With `code`, a class, it is the last line in the folder of its file. Empty if no file had to do with it.
    """
    frames = [(path, line) for _, path, line in _frames(error.__traceback__) if not path.startswith("<")]
    source = getattr(sys.modules.get(getattr(code, "__module__", "")), "__file__", None)
    own = [(path, line) for path, line in frames if source and Path(path).parent == Path(source).parent]
    for path, line in (own or frames)[-1:]:
        return f" ({Path(path).name}:{line})"
    return ""


def _frames(trace: TracebackType | None) -> Iterator[tuple[str, str, int]]:
    """Yield the module, the file and the line of each frame that an exception passed, the innermost last."""
    while trace is not None:
        frame = trace.tb_frame
        yield str(frame.f_globals.get("__name__", "")), frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
