"""The position of a conversation: its turns, and its actual and charged tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import final

from longspan.simulator.contract.messages import Turn
from longspan.simulator.journal import events
from longspan.simulator.play.conductor import Conductor

__all__ = ["Positions", "Trunk"]


@final
@dataclass(frozen=True, slots=True)
class Trunk:
    """The end of a conversation that others branch off from.

    It is before turn `turns`, at virtual time `now`, at an actual and a charged (`dealt`) position in tokens. `needles` are the turns of
    its tests' needles, and `opened` the opening events of these tests by id. `sum` is the last checksum of its journal.
    """

    conversation: str
    turns: int
    position: int
    dealt: int
    now: datetime
    needles: Mapping[str, Sequence[int]]
    opened: Mapping[str, events.Open]
    sum: str

    @property
    def point(self) -> events.BranchPoint:
        """The branch point that a branch's journal records."""
        return events.BranchPoint(conversation=self.conversation, turn=self.turns, sum=self.sum)


@final
class Positions:
    """The turns of a conversation so far. A branch continues from the end of its `trunk`.

    The actual position is the end of the last reply. The charged position belongs to the conductor, which bases its decisions on it.
    """

    def __init__(self, conductor: Conductor, trunk: Trunk | None) -> None:
        self._conductor = conductor
        self._first, self._said = (0, 0) if trunk is None else (trunk.turns, trunk.position)
        self._history: list[Turn] = []
        conductor.passes(0 if trunk is None else trunk.dealt)

    @property
    def turns(self) -> int:
        """The number of the next turn."""
        return self._first + len(self._history)

    @property
    def said(self) -> int:
        """The position in actual tokens."""
        return self._history[-1].end if self._history else self._said

    @property
    def dealt(self) -> int:
        """The position in charged tokens."""
        return self._conductor.dealt

    def turn(self, number: int) -> Turn:
        """Return a turn of this conversation. Its trunk's turns are not available."""
        return self._history[number - self._first]

    def add(self, turn: Turn, charge: int) -> None:
        """Add a turn with its charge in tokens."""
        self._history.append(turn)
        self._conductor.charges(charge)
