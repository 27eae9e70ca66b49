"""The current turn of the conversation that this task plays. The files next to its journal record it."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Final, final

__all__ = ["Moment", "current_moment", "set_moment"]


@final
@dataclass(slots=True)
class Moment:
    """The last turn given to the agent, and its virtual time, or None before the first turn. Updated as the conversation proceeds."""

    turn: int | None = None
    sent_at: datetime | None = None


_moment: Final[ContextVar[Moment | None]] = ContextVar("moment", default=None)


def current_moment(*, new: bool = False) -> Moment:
    """Return the current moment of this task's conversation. `new` starts a new conversation."""
    known = _moment.get()
    if known is None or new:
        known = Moment()
        _moment.set(known)
    return known


def set_moment(turn: int, sent_at: datetime) -> None:
    """Record the turn that the agent is about to get."""
    now = current_moment()
    now.turn, now.sent_at = turn, sent_at
