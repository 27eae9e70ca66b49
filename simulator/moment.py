"""Where the conversation stands that this task plays: for what is kept beside its journal."""

from __future__ import annotations

from contextvars import ContextVar
from datetime import datetime
from typing import Final, NamedTuple, final

__all__ = ["Moment", "moment", "set_moment"]


@final
class Moment(NamedTuple):
    """A turn's number, and its virtual time."""

    turn: int
    sent_at: datetime


_moment: Final[ContextVar[Moment | None]] = ContextVar("moment", default=None)


def moment() -> Moment | None:
    """Return the turn that the agent was last given, None before the first."""
    return _moment.get()


def set_moment(turn: int, sent_at: datetime) -> None:
    """Say which turn the agent is given now."""
    _moment.set(Moment(turn, sent_at))
