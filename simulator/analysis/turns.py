"""The turns of a run as its journals hold them, whole: for those who pass them on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, final

from longspan.simulator import events
from longspan.simulator.errors import JournalError
from longspan.simulator.journal import read_journal
from longspan.simulator.run_folder import RunFolder

__all__ = ["Conversation", "Turn", "conversations"]


@final
class Turn(NamedTuple):
    """A message and its reply; None where the conversation was broken off before there was one."""

    message: events.Message
    reply: events.Reply | None


@final
@dataclass(slots=True)
class Conversation:
    """A conversation's turns in order, and how its tests opened."""

    turns: list[Turn] = field(default_factory=list)
    opened: dict[str, events.Open] = field(default_factory=dict)


def conversations(run: RunFolder) -> dict[str, Conversation]:
    """A run's conversations; one that was not begun has no turns. Raises JournalError for a damaged journal."""
    return {id: _read(run, id) for id in run.manifest.conversations}


def _read(run: RunFolder, id: str) -> Conversation:
    found = Conversation()
    path = run.journal(id)
    for event in read_journal(path) if path.exists() else ():
        match event:
            case events.Open():
                found.opened[event.test] = event
            case events.Message() if event.turn == len(found.turns):
                found.turns.append(Turn(event, None))
            case events.Reply() if event.turn == len(found.turns) - 1:
                found.turns[-1] = found.turns[-1]._replace(reply=event)
            case events.Message() | events.Reply():
                raise JournalError(f"{path}: contradicts itself at the {event.type} of turn {event.turn}")
    return found
