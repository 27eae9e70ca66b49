"""The conversation's own date and time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, final

__all__ = ["PACE", "STARTS_AT", "VirtualClock"]

STARTS_AT: Final = datetime(2024, 1, 1, 9, 0)
"""The virtual date and time at which a conversation starts, unless its manifest says otherwise."""

PACE: Final = timedelta(seconds=30)
"""The virtual time that a turn takes, unless its manifest says otherwise."""


@final
class VirtualClock:
    """Virtual time: starts at `start`, moves by `pace` each turn, and jumps. Nothing else moves it.

    Dates carry no zone: it is the same for everybody in the conversation.

    Raises ValueError for a start with a zone, a pace below zero, or a jump backwards.
    """

    def __init__(self, start: datetime, pace: timedelta) -> None:
        if start.tzinfo is not None:
            raise ValueError(f"virtual time has no zone, got {start.isoformat()}")
        if pace < timedelta(0):
            raise ValueError(f"pace must be >= 0, got {pace}")
        self._now = start
        self._pace = pace

    @property
    def now(self) -> datetime:
        return self._now

    def tick(self) -> None:
        """One turn has passed."""
        self._now += self._pace

    def jump(self, to: datetime) -> None:
        if to < self._now:
            raise ValueError(f"time can't go backwards: {to.isoformat()} is before {self._now.isoformat()}")
        self._now = to
