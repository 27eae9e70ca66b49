"""The current turn of the conversation that this task plays, for the files kept beside its journal."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Final, final

__all__ = ["Moment", "moment", "set_moment"]


@final
@dataclass(slots=True)
class Moment:
    """The turn most recently given to the agent, and its virtual time; None before the first turn. It changes as the conversation goes
    on."""

    turn: int | None = None
    sent_at: datetime | None = None


_moment: Final[ContextVar[Moment | None]] = ContextVar("moment", default=None)


def moment(*, new: bool = False) -> Moment:
    """Return the current moment of the conversation. `new`: a conversation begins with this task."""
    known = _moment.get()
    if known is None or new:
        known = Moment()
        _moment.set(known)
    return known


def set_moment(turn: int, sent_at: datetime) -> None:
    """Record the turn that is now given to the agent."""
    now = moment()
    now.turn, now.sent_at = turn, sent_at
