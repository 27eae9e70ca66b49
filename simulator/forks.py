"""Where an experiment leaves the conversation whose beginning it shares."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import final

from longspan.simulator.events import BranchPoint, Message
from longspan.simulator.experiment import Experiment
from longspan.simulator.journal import Shared, read_lines
from longspan.simulator.transcript import Transcript, Turn

__all__ = ["Fork", "fork_of"]


@final
@dataclass(frozen=True, slots=True)
class Fork:
    """The branch point of an `experiment`, what it shares with the other conversation, and the turn `since` which its agent knows it."""

    experiment: Experiment
    point: BranchPoint
    shared: Shared
    since: int = 0


def fork_of(experiment: Experiment, journal: Path) -> Fork:
    """Find where an experiment leaves the conversation in a closed `journal`: before the message that it replaces or asks again, or before
    the close if the test has said none. Raises JournalError for a damaged journal.
    """
    transcript = Transcript()
    lines: list[bytes] = []
    sums: list[str] = []
    starts: list[int] = []
    before: tuple[int, int] | None = None  # how many lines there are before the message, and its turn
    for line, event, sum in read_lines(journal):
        change = transcript.add(event)
        if isinstance(change, Turn) and change.reply is None:
            if change.message.test == experiment.test and _leaves(experiment, change.message):
                before = len(lines), change.number
            starts.append(change.message.start)
        if transcript.closed or (before is not None and experiment.kind == "twin"):
            break
        lines.append(line)
        sums.append(sum)
    number, turn = before or (len(lines), len(starts))
    point = BranchPoint(conversation=experiment.conversation, turn=turn, sum=sums[number - 1])
    since = 0
    if experiment.tokens is not None and turn < len(starts):
        since = next(place for place, start in enumerate(starts) if start >= starts[turn] - experiment.tokens)
    return Fork(experiment, point, Shared(journal, lines[1:number]), since)


def _leaves(experiment: Experiment, message: Message) -> bool:
    """Return whether an experiment goes its own way at a message of its test; a lesion at the last of them."""
    if experiment.kind == "lesion":
        return message.kind == "question"
    return message.needle and message.kind != "question"
