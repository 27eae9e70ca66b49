"""The nights of a conversation, during which an agent may put its memory in order."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from math import inf
from typing import Final, final

__all__ = ["MAX_NIGHTS", "Nights", "morning_after"]

MORNING: Final = time(7, 30)
"""The time of day, in virtual time, when a night ends."""

SHORTEST: Final = timedelta(hours=4)
"""The shortest night, in virtual time."""

MAX_NIGHTS: Final = 100
"""The most nights in a span."""


def morning_after(now: datetime) -> datetime:
    """Return the end of a night that begins now."""
    morning = datetime.combine(now.date(), MORNING)
    return morning if morning >= now + SHORTEST else morning + timedelta(days=1)


@final
class Nights:
    """Decides when nights fall: `each` of them in every `span`, evenly spaced in charged tokens, the first after half an interval.

    A test therefore lives through about the same number of nights at every span, and every agent has them in the same places.
    """

    def __init__(self, each: int, span: int) -> None:
        self._apart = span / each if each else inf
        self._next = self._apart / 2
        self._turn = 0

    def fall(self, turn: int, position: int) -> bool:
        """Return whether a night falls before turn number `turn`, at a charged position. At most one night falls between two turns. If one
        does, the next call waits for the night after it."""
        if position < self._next or turn == self._turn:
            return False
        self._next += self._apart
        self._turn = turn
        return True
