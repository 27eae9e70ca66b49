"""The nights of a conversation, in which an agent may put its memory in order."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from math import inf
from typing import Final, final

__all__ = ["MAX_NIGHTS", "Nights", "morning_after"]

MORNING: Final = time(7, 30)
"""When a night is over, in virtual time."""

SHORTEST: Final = timedelta(hours=4)
"""The least virtual time that a night takes."""

MAX_NIGHTS: Final = 100
"""The most nights in a span."""


def morning_after(now: datetime) -> datetime:
    """Return when a night is over that begins now."""
    morning = datetime.combine(now.date(), MORNING)
    return morning if morning >= now + SHORTEST else morning + timedelta(days=1)


@final
class Nights:
    """When nights fall: `each` of them in every `span`, at equal distances of charged tokens, the first after half of one.

    So a test passes as many nights, or nearly, at every span, and they fall at the same places for every agent.
    """

    def __init__(self, each: int, span: int) -> None:
        self._apart = span / each if each else inf
        self._next = self._apart / 2
        self._turn = 0

    def fall(self, turn: int, position: int) -> bool:
        """Return whether a night falls before turn number `turn`, at a charged position: no two fall between the same turns. If it
        does, the next one is waited for."""
        if position < self._next or turn == self._turn:
            return False
        self._next += self._apart
        self._turn = turn
        return True
