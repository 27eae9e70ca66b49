"""The virtual clock of a conversation."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, final

__all__ = ["DEFAULT_PACE", "DEFAULT_START", "VirtualClock"]

DEFAULT_START: Final = datetime(2024, 1, 1, 9, 0)
"""The default virtual date and time at the start of a conversation."""

DEFAULT_PACE: Final = timedelta(seconds=30)
"""The default virtual duration of a turn."""


@final
class VirtualClock:
    """A virtual clock that starts at `start`, advances by `pace` each turn, and can jump forward.

    Its dates have no time zone. Raises ValueError if `start` has one, if the pace is negative, or for a jump backwards.
    """

    def __init__(self, start: datetime, pace: timedelta) -> None:
        if start.tzinfo is not None:
            raise ValueError(f"virtual time has no time zone, got {start.isoformat()}")
        if pace < timedelta(0):
            raise ValueError(f"pace must be >= 0, got {pace}")
        self._now = start
        self._pace = pace

    @property
    def now(self) -> datetime:
        return self._now

    def tick(self) -> None:
        """Advance by one turn."""
        self._now += self._pace

    def jump(self, to: datetime) -> None:
        if to < self._now:
            raise ValueError(f"time cannot go backwards: {to.isoformat()} is before {self._now.isoformat()}")
        self._now = to
