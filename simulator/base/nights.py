"""The nights of a conversation, when an agent may consolidate its memory."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from math import inf
from typing import Final, final

__all__ = ["MAX_NIGHTS", "Nights", "morning_after"]

MORNING: Final = time(7, 30)
"""The virtual time of day when a night ends."""

SHORTEST: Final = timedelta(hours=4)
"""The shortest night in virtual time."""

MAX_NIGHTS: Final = 100
"""The most nights in a span."""


def morning_after(now: datetime) -> datetime:
    """Return the end of a night that begins now."""
    morning = datetime.combine(now.date(), MORNING)
    return morning if morning >= now + SHORTEST else morning + timedelta(days=1)


@final
class Nights:
    """Schedules nights: `each` of them per `span`, at equal distances in charged tokens, the first after half a distance.

    So a test spans about the same number of nights at every span, and every agent has them in the same places.
    """

    def __init__(self, each: int, span: int) -> None:
        self._apart = span / each if each else inf
        self._next = self._apart / 2
        self._turn = 0

    def fall(self, turn: int, position: int) -> bool:
        """Return whether a night falls before turn number `turn`, at the charged position `position`.

        At most one night falls between two turns. If one falls, the next call waits for the next night.
        """
        if position < self._next or turn == self._turn:
            return False
        self._next += self._apart
        self._turn = turn
        return True
