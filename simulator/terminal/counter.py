"""A progress counter for long commands. A terminal gets one line that is updated; other outputs get a line for each tenth."""

from __future__ import annotations

from types import TracebackType
from typing import final

from longspan.simulator.base.terminal import can_rewrite_line, complain

__all__ = ["Counter"]


@final
class Counter:
    """Shows on standard error how many of `what` are done."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._last = 0
        self._live = can_rewrite_line()

    def __enter__(self) -> Counter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live and self._last:
            complain()

    def update(self, done: int, total: int) -> None:
        """Show that `done` of `total` are done."""
        tenth = 10 * done // total
        if self._live or tenth > self._last:
            complain(f"{done:,} of {total:,} {self._what}", rewritten=self._live)
        self._last = max(tenth, self._last, int(self._live))
