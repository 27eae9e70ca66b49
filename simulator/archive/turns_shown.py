"""Turns that took place, as an agent is shown them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple, final

from longspan.simulator.archive.run_folder import RunFolder
from longspan.simulator.contract.messages import Message, Reply, Usage
from longspan.simulator.journal.transcript import Transcripts, Turn

__all__ = ["PastTurn", "message_of", "nights_before", "past_turns", "turns_of"]


@final
class PastTurn(NamedTuple):
    """A message, its reply, and whether the agent made it (`asked`) or was only told of it. `nights`: when the nights directly before it
    were over in which the agent worked."""

    message: Message
    reply: Reply
    asked: bool
    nights: Sequence[datetime] = ()

    @classmethod
    def of(cls, turn: Turn) -> PastTurn:
        """Return a turn of a journal. Raises ValueError for one without a reply."""
        event = turn.reply
        if event is None:
            raise ValueError(f"turn {turn.number} has no reply")
        usage = Usage.of(event.usage) if event.usage else None
        reply = Reply(event.text, usage, event.trace, refused=bool(event.refused))
        return cls(message_of(turn), reply, event.asked, nights_before(turn))


def message_of(turn: Turn) -> Message:
    """Return the message of a turn of a journal."""
    message = turn.message
    return Message(message.text, message.sent_at, message.turn_id)


def nights_before(turn: Turn) -> Sequence[datetime]:
    """Return when the nights directly before a turn were over in which the agent worked."""
    return [night.to for night in turn.nights if night.consolidated]


def turns_of(run: RunFolder, conversation: str, transcripts: Transcripts | None = None) -> Iterator[Turn]:
    """Read a conversation's turns, into `transcripts` if they are given, those of its trunk first. A turn comes when its message does,
    and again with its reply. Raises JournalError for a damaged journal."""
    transcripts = Transcripts() if transcripts is None else transcripts
    trunk = run.manifest.trunks.get(conversation)
    for id in (conversation,) if trunk is None else (trunk, conversation):
        yield from (change for change in run.fold(id, partial(transcripts.add, id)) if isinstance(change, Turn))


def past_turns(run: RunFolder, conversation: str) -> Iterator[PastTurn]:
    """Yield a conversation's turns that have a reply, those of its trunk first. Raises JournalError for a damaged journal."""
    return (PastTurn.of(turn) for turn in turns_of(run, conversation) if turn.reply is not None)
