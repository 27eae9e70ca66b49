"""Reports calls of `os._exit` by other people's code, which would end the command without a word, and even with success."""

from __future__ import annotations

import faulthandler
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import CodeType, FrameType
from typing import Final, NoReturn, final

from longspan.simulator.base.terminal import complain

__all__ = ["LOOPS", "HardExitError", "end_process", "report_crashes"]

end_process: Final = os._exit
"""Ends the process at once, as Python's own `os._exit` does."""

LOOPS: Final[set[CodeType]] = set()
"""Functions of longspan that run event loops. Errors of the tasks in them reach nobody."""


@final
class HardExitError(BaseException):
    """Code called `os._exit`. Not an Exception, so that this code does not catch it by accident."""


@contextmanager
def report_crashes() -> Iterator[None]:
    """In this context, let the process, which must be longspan's own, say why it ends if other people's code ends it.

    A call of `os._exit` raises HardExitError if longspan called the code, since longspan then blames the code and goes on. In a thread or a
    task of the code's own, one line says where the call is, and the process ends with the exit code of a failure. In a process that was
    forked from this one, `os._exit` works as usual: that is how such processes end. After a crash in native code, such as a segmentation
    fault, Python shows the line that ran.
    """
    owner = os.getpid()

    def exit_with_report(status: int) -> NoReturn:
        if os.getpid() != owner:
            end_process(status)
        caller = sys._getframe(1)
        if _is_called_by_longspan(caller):
            raise HardExitError(f"it called os._exit({status}), which would end longspan; raise an exception instead")
        where = f"{Path(caller.f_code.co_filename).name}:{caller.f_lineno}"
        complain(f"longspan: os._exit({status}) was called at {where}, which ends longspan; `longspan resume` continues a run")
        end_process(1)

    with suppress(OSError, RuntimeError, ValueError):  # standard error is closed
        faulthandler.enable(all_threads=False)
    os._exit = exit_with_report
    try:
        yield
    finally:
        os._exit = end_process


def _is_called_by_longspan(frame: FrameType | None) -> bool:
    """Return whether a function of longspan called this code, in this thread and task."""
    while frame is not None and frame.f_code not in LOOPS:
        if str(frame.f_globals.get("__name__")).startswith("longspan."):
            return True
        frame = frame.f_back
    return False
