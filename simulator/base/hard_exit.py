"""Reports calls of `os._exit` in other people's code. They would end a command without a message, and even with success."""

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
"""Python's own `os._exit`, which ends the process immediately."""

LOOPS: Final[set[CodeType]] = set()
"""Functions of longspan that run event loops. An exception in their tasks would not reach longspan's caller."""


@final
class HardExitError(BaseException):
    """Code called `os._exit`. Not an Exception, so that the same code does not catch it by accident."""


@contextmanager
def report_crashes() -> Iterator[None]:
    """Report why the process ends if other people's code ends it. The process must be longspan's own.

    If longspan called the code, `os._exit` raises HardExitError: longspan reports the code's fault and continues. In a thread or task that
    the code started, one line names the place of the call, and the process ends with an error code. In a forked process, `os._exit` works
    as usual, because that is how forked processes end. After a crash in native code, such as a segmentation fault, Python prints the line
    that was running.
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

    with suppress(OSError, RuntimeError, ValueError):  # standard error may be closed
        faulthandler.enable(all_threads=False)
    os._exit = exit_with_report
    try:
        yield
    finally:
        os._exit = end_process


def _is_called_by_longspan(frame: FrameType | None) -> bool:
    """Return whether a function of longspan called this code, in the same thread and task."""
    while frame is not None and frame.f_code not in LOOPS:
        if str(frame.f_globals.get("__name__")).startswith("longspan."):
            return True
        frame = frame.f_back
    return False
