"""A progress counter for long commands: one updated line on a terminal, a line for each tenth elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import final

__all__ = ["Counter"]


@final
class Counter:
    """Shows how many of `what` are done, on standard error. `quiet` shows nothing. A closed stream is ignored."""

    def __init__(self, what: str, *, quiet: bool = False) -> None:
        self._what = what
        self._quiet = quiet
        self._last = 0
        self._live = sys.stderr.isatty()

    def __enter__(self) -> Counter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live and self._last:
            self._print("\n")

    def update(self, done: int, total: int) -> None:
        """Show that `done` of `total` are done."""
        tenth = 10 * done // total
        if self._live:
            self._print(f"\r{done:,} of {total:,} {self._what}")
        elif tenth > self._last:
            self._print(f"{done:,} of {total:,} {self._what}\n")
        self._last = max(tenth, self._last, int(self._live))

    def _print(self, text: str) -> None:
        if not self._quiet:
            try:
                print(text, end="", file=sys.stderr, flush=True)
            except OSError:
                self._quiet = True
