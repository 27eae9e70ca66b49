"""Whether the journals of a run that nobody can play again make sense: each event has to follow from those before."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from longspan.simulator import events
from longspan.simulator.errors import JournalError, ReplayError
from longspan.simulator.manifest import Manifest
from longspan.simulator.run_folder import RunFolder
from longspan.simulator.tokens import Tokenizer
from longspan.simulator.transcript import Change, Played, Transcript, Turn

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
        transcript = Transcript()
        for number, event in enumerate(run.events(id), 1):
            if wrong := _wrong(event, transcript, manifest, count):
                raise ReplayError(f"{run.journal(id)}, line {number}: {wrong}")


def _wrong(event: events.Event, transcript: Transcript, manifest: Manifest, count: Callable[[str], int]) -> str | None:
    """Take the next event. What in it does not follow from those before; None where all does."""
    now, tokens, waiting = transcript.now, transcript.tokens, transcript.waiting
    try:
        change = transcript.add(event)
    except JournalError as error:
        return str(error)
    if waiting is not None and transcript.waiting is waiting:
        return f"turn {waiting.number} has no reply"
    if now is None and transcript.begin is not None:
        begin = transcript.begin
        return next(filter(None, (_differs(name, getattr(begin, name), getattr(manifest, name)) for name in SETTING)), None)
    return _back(now, transcript.now) or _wrong_change(change, tokens, manifest, count)


def _wrong_change(change: Change, tokens: int, manifest: Manifest, count: Callable[[str], int]) -> str | None:
    match change:
        case Played(status="open"):
            known = any(plan.id == change.id for group in manifest.conversations.values() for plan in group)
            position = change.definition.position
            return _differs("position", position, tokens) if known else f"the manifest has no test {change.id!r:.80}"
        case Turn(message, None):
            return _differs("start", message.start, tokens) or _differs("tokens", message.tokens, count(message.text))
        case Turn(message, reply) if reply is not None:
            own = count(reply.text)
            return _differs("tokens", reply.tokens, own) or _differs("end", reply.end, message.start + message.tokens + own)
    return None


def _back(now: datetime | None, then: datetime | None) -> str | None:
    if now is None or then is None or (then.tzinfo is None and then >= now):
        return None
    return f"time goes from {now} to {then}: back, or to another zone"


def _differs(name: str, told: object, right: object) -> str | None:
    return None if told == right else f"{name} is {told}, but what stands before makes it {right}"
