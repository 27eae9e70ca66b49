"""How far a long command is, at the terminal: one line that is kept up there, and a line for each tenth elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import final

__all__ = ["Counting"]


@final
class Counting:
    """Counts `what` on the error stream, so that what is printed stays as it is. `quiet`: says nothing. A stream that has gone
    ends nothing."""

    def __init__(self, what: str, *, quiet: bool = False) -> None:
        self._what = what
        self._quiet = quiet
        self._told = 0
        self._live = sys.stderr.isatty()

    def __enter__(self) -> Counting:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live and self._told:
            self._print("\n")

    def heard(self, done: int, wanted: int) -> None:
        """`done` of `wanted` are done."""
        tenth = 10 * done // wanted
        if self._live:
            self._print(f"\r{done:,} of {wanted:,} {self._what}")
        elif tenth > self._told:
            self._print(f"{done:,} of {wanted:,} {self._what}\n")
        self._told = max(tenth, self._told, int(self._live))

    def _print(self, text: str) -> None:
        if not self._quiet:
            try:
                print(text, end="", file=sys.stderr, flush=True)
            except OSError:
                self._quiet = True
