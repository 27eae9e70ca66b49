"""Consistency checks for journals that cannot be replayed: each event must follow from the events before it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from longspan.simulator.base.errors import JournalError, ReplayError
from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.journal import events
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.journal.transcript import Change, PlayedTest, PlayedTurn, Transcript
from longspan.simulator.suite.manifest import Manifest

__all__ = ["check_coherence"]

SETTING: Final = ("span", "placement", "isolated", "tokenizer", "starts_at", "pace_s")
"""Fields that a conversation's Begin event repeats from the manifest."""


def check_coherence(run: RunFolder) -> None:
    """Check that the turns, positions, token counts, times and tests in a run's journals follow from one another.

    Raises ReplayError, with the line, if they do not, and JournalError for a damaged journal.
    """
    manifest = run.manifest
    count = Tokenizer(manifest.tokenizer).count
    for id in manifest.conversations:
        transcript = Transcript()
        for number, event in enumerate(run.events(id), 1):
            if problem := _add(event, transcript, manifest, count):
                raise ReplayError(f"{run.journal(id)}, line {number}: {problem}")


def _add(event: events.Event, transcript: Transcript, manifest: Manifest, count: Callable[[str], int]) -> str | None:
    """Add the next event to the transcript. Return what contradicts earlier events; None if it is consistent."""
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
    return _check_time(now, transcript.now) or _check_change(change, tokens, manifest, count)


def _check_change(change: Change, tokens: int, manifest: Manifest, count: Callable[[str], int]) -> str | None:
    match change:
        case PlayedTest(status="open"):
            known = any(plan.id == change.id for group in manifest.conversations.values() for plan in group)
            position = change.definition.position
            return _differs("position", position, tokens) if known else f"the manifest has no test {change.id!r:.80}"
        case PlayedTurn(message, None):
            return _differs("start", message.start, tokens) or _differs("tokens", message.tokens, count(message.text))
        case PlayedTurn(message, reply) if reply is not None:
            size = count(reply.text)
            return _differs("tokens", reply.tokens, size) or _differs("end", reply.end, message.start + message.tokens + size)
    return None


def _check_time(before: datetime | None, after: datetime | None) -> str | None:
    if before is None or after is None or (after.tzinfo is None and after >= before):
        return None
    return f"time goes from {before} to {after}: backwards, or to another time zone"


def _differs(name: str, actual: object, expected: object) -> str | None:
    return None if actual == expected else f"{name} is {actual}, expected {expected} after the events before"
