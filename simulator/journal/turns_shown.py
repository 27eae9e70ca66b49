"""Past turns in the form that agents receive them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple, final

from longspan.simulator.contract.messages import Message, Reply, Usage
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.journal.transcript import PlayedTurn, Transcripts

__all__ = ["PastTurn", "message_of", "nights_before", "past_turns", "turns_of"]


@final
class PastTurn(NamedTuple):
    """A message and its reply. `asked`: the agent wrote the reply. `nights`: the ends of the nights directly before the turn when the agent
    worked."""

    message: Message
    reply: Reply
    asked: bool
    nights: Sequence[datetime] = ()

    @classmethod
    def of(cls, turn: PlayedTurn) -> PastTurn:
        """Return a turn of a journal as a past turn. Raises ValueError if it has no reply."""
        event = turn.reply
        if event is None:
            raise ValueError(f"turn {turn.number} has no reply")
        usage = Usage.of(event.usage) if event.usage else None
        reply = Reply(event.text, usage, event.trace, refused=bool(event.refused))
        return cls(message_of(turn), reply, event.asked, nights_before(turn))


def message_of(turn: PlayedTurn) -> Message:
    """Return the message of a turn of a journal."""
    message = turn.message
    return Message(message.text, message.sent_at, message.turn_id)


def nights_before(turn: PlayedTurn) -> Sequence[datetime]:
    """Return the ends of the nights directly before a turn when the agent worked."""
    return [night.to for night in turn.nights if night.consolidated]


def turns_of(run: RunFolder, conversation: str, transcripts: Transcripts | None = None) -> Iterator[PlayedTurn]:
    """Yield a conversation's turns, starting with its trunk's, and fold them into `transcripts` if given.

    Each turn is yielded twice: with its message, and again with its reply. Raises JournalError for a damaged journal.
    """
    transcripts = Transcripts() if transcripts is None else transcripts
    trunk = run.manifest.trunks.get(conversation)
    for id in (conversation,) if trunk is None else (trunk, conversation):
        yield from (change for change in run.fold(id, partial(transcripts.add, id)) if isinstance(change, PlayedTurn))


def past_turns(run: RunFolder, conversation: str) -> Iterator[PastTurn]:
    """Yield a conversation's turns that have a reply, starting with its trunk's. Raises JournalError for a damaged journal."""
    return (PastTurn.of(turn) for turn in turns_of(run, conversation) if turn.reply is not None)
