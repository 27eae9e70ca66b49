"""Batches of turns to add to a memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Final, Literal, final

from pydantic import PlainValidator

from longspan.agents.memory.turns import Turn
from longspan.simulator.base.integers import parse_integer

__all__ = ["Batch", "Batches"]


def _batch(value: object) -> object:
    if value in ("session", "turn"):
        return value
    size = parse_integer(value)
    if not isinstance(size, int) or not 1 <= size <= 100_000:
        raise ValueError("must be session, turn, or a number of turns from 1 to 100,000")
    return size


Batch = Annotated[Literal["session", "turn"] | int, PlainValidator(_batch)]
"""The batch size: a session, one turn, or a number of turns."""

GAP: Final = timedelta(minutes=30)
"""A longer gap between turns ends the session."""


@final
class Batches:
    """Grouping of turns into batches, oldest first. `waiting`: the turns of the incomplete batch."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self.waiting: list[Turn] = []

    def put(self, turn: Turn) -> Sequence[Turn]:
        """Add a turn. Return the batch that it completes, if any."""
        if self._batch == "session":
            ended = self.take() if self.waiting and turn.sent_at - self.waiting[-1].sent_at > GAP else ()
            self.waiting.append(turn)
            return ended
        self.waiting.append(turn)
        return self.take() if self._batch == "turn" or len(self.waiting) >= self._batch else ()

    def take(self) -> Sequence[Turn]:
        """Return the incomplete batch and start a new one."""
        taken, self.waiting = self.waiting, []
        return taken
