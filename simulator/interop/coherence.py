"""Whether the journals of a run that nobody can play again make sense: each event has to follow from those before."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from longspan.simulator import events
from longspan.simulator.errors import ReplayError
from longspan.simulator.journal import read_journal
from longspan.simulator.manifest import Manifest
from longspan.simulator.run_folder import RunFolder
from longspan.simulator.tokens import Tokenizer
from longspan.simulator.transcript import Transcript

__all__ = ["check"]

SETTING: Final = ("span", "placement", "isolated", "tokenizer", "starts_at", "pace_s")
"""What a conversation's beginning repeats from its manifest."""


def check(run: RunFolder) -> None:
    """Look at all events of a run's journals: turns, positions, token counts, times and tests have to go on from each other.

    Raises ReplayError, with the line, where they do not; JournalError for a journal that is damaged.
    """
    manifest = run.manifest
    count = Tokenizer(manifest.tokenizer).count
    for id in manifest.conversations:
        path = run.journal(id)
        transcript = Transcript()
        before: events.Event | None = None
        for number, event in enumerate(read_journal(path), 1):
            if wrong := _wrong(event, before, transcript, manifest, count):
                raise ReplayError(f"{path}, line {number}: {wrong}")
            transcript.add(event)
            before = event


def _wrong(
    event: events.Event, before: events.Event | None, transcript: Transcript, manifest: Manifest, count: Callable[[str], int]
) -> str | None:
    """What in an event does not follow from those before; None where all does."""
    if (before is None) != isinstance(event, events.Begin):
        return "a journal begins with one event of type begin" if before is None else "the conversation begins again"
    if isinstance(before, events.Close):
        return "there is an event after the conversation's close"
    if isinstance(before, events.Message) and not isinstance(event, events.Reply):
        return f"turn {before.turn} has no reply"
    match event:
        case events.Begin():
            return next(filter(None, (_differs(name, getattr(event, name), getattr(manifest, name)) for name in SETTING)), None)
        case events.Open():
            known = any(plan.id == event.test for group in manifest.conversations.values() for plan in group)
            return _differs("position", event.position, transcript.tokens) if known else f"the manifest has no test {event.test!r:.80}"
        case events.Message():
            return _wrong_message(event, transcript, count)
        case events.Reply():
            return _wrong_reply(event, before, count)
        case events.Jump():
            return _not_open(event.test, transcript) or _back(transcript.now, event.to)
        case events.Award() if not 0 <= event.turn < transcript.turns:
            return f"turn {event.turn} has not been"
        case events.End() if any(not 0 <= turn < transcript.turns for turn in event.watched):
            return "it watched turns that have not been"
        case events.Close():
            return _differs("turns", event.turns, transcript.turns) or _differs("tokens", event.tokens, transcript.tokens)
    return None


def _wrong_message(message: events.Message, transcript: Transcript, count: Callable[[str], int]) -> str | None:
    if message.test is not None and (wrong := _not_open(message.test, transcript)):
        return wrong
    if any(not 0 <= turn < message.turn for turn in message.needs or ()):
        return f"the question needs turns that have not been: {message.needs}"
    return (
        _back(transcript.now, message.sent_at)
        or _differs("turn", message.turn, transcript.turns)
        or _differs("start", message.start, transcript.tokens)
        or _differs("tokens", message.tokens, count(message.text))
    )


def _wrong_reply(reply: events.Reply, message: events.Event | None, count: Callable[[str], int]) -> str | None:
    if not isinstance(message, events.Message):
        return "a reply to nothing"
    tokens = count(reply.text)
    return (
        _differs("turn", reply.turn, message.turn)
        or _differs("tokens", reply.tokens, tokens)
        or _differs("end", reply.end, message.start + message.tokens + tokens)
    )


def _not_open(test: str, transcript: Transcript) -> str | None:
    return None if test in transcript.open else f"test {test!r:.80} is not open"


def _back(now: datetime | None, then: datetime) -> str | None:
    if now is None or (then.tzinfo is None and then >= now):
        return None
    return f"time goes from {now} to {then}: back, or to another zone"


def _differs(name: str, told: object, right: object) -> str | None:
    return None if told == right else f"{name} is {told}, but what stands before makes it {right}"
