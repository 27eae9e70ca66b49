"""Finds where an experiment diverges from the conversation that it shares its beginning with."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from longspan.simulator.journal.events import BranchPoint, Message, Night, Reply
from longspan.simulator.journal.journal import SharedPrefix, read_lines
from longspan.simulator.journal.transcript import PlayedTurn, Transcript
from longspan.simulator.suite.experiment import Experiment

__all__ = ["Fork", "fork_of"]


@final
@dataclass(frozen=True, slots=True)
class Fork:
    """The branch point of an `experiment`, and the part that it shares with the other conversation.

    In a lesion, the agent answers only the test's questions. `said`: the recorded replies to all other turns from the branch point on, by
    turn. `nights`: the turns after a night when the agent worked. `since`: the first turn that the agent knows at the first question.
    """

    experiment: Experiment
    point: BranchPoint
    shared: SharedPrefix
    said: Mapping[int, Reply] = field(default_factory=dict)
    nights: frozenset[int] = frozenset()
    since: int = 0

    def gives(self, message: Message) -> Reply | None:
        """Return the recorded reply to a message, or None if the agent must answer it."""
        if message.test == self.experiment.test and message.kind == "question":
            return None
        return self.said.get(message.turn)

    def first_known_turn(self, starts: Sequence[int], start: int) -> int:
        """Return the first turn that a lesion's agent knows when it is asked at token `start`.

        `starts`: the positions where the turns before it start.
        """
        return _first_known_turn(self.experiment, starts, start)


def fork_of(experiment: Experiment, journal: Path) -> Fork:
    """Find where an experiment diverges from the conversation in a closed `journal`.

    This is before the first message that it replaces or asks again, or before the close if there is no such message. Raises JournalError
    for a damaged journal.
    """
    transcript = Transcript()
    lines: list[bytes] = []
    sums: list[str] = []
    before: tuple[int, int] | None = None  # the number of lines before the message, and its turn
    starts: list[int] = []
    said: dict[int, Reply] = {}
    nights: set[int] = set()
    for line, event, sum in read_lines(journal):
        change = transcript.add(event)
        if isinstance(change, PlayedTurn) and change.reply is None and before is None:
            starts.append(change.message.start)
            if change.message.test == experiment.test and _leaves(experiment, change.message):
                before = len(lines), change.number
        if transcript.closed or (before is not None and experiment.kind == "twin"):
            break
        if before is None:
            lines.append(line)
            sums.append(sum)
        elif isinstance(event, Reply):
            said[event.turn] = event
        elif isinstance(event, Night) and event.consolidated:
            nights.add(event.turn)
    number, turn = before or (len(lines), transcript.turns)
    since = _first_known_turn(experiment, starts, starts[turn]) if experiment.kind == "lesion" and before is not None else 0
    point = BranchPoint(conversation=experiment.conversation, turn=turn, sum=sums[number - 1])
    return Fork(experiment, point, SharedPrefix(journal, lines[1:number]), said, frozenset(nights), since)


def _first_known_turn(experiment: Experiment, starts: Sequence[int], start: int) -> int:
    return bisect_left(starts, start - (experiment.tokens or 0))


def _leaves(experiment: Experiment, message: Message) -> bool:
    """Return whether an experiment diverges at a message of its test."""
    if experiment.kind == "lesion":
        return message.kind == "question"
    return message.needle and message.kind != "question"
