"""Present a recorded history to an agent: turn by turn, or as one text.

In a conversation between a user and an assistant, each message of the user comes with its recorded reply. In a conversation between
people, each turn is a separate message that names its speaker and has no reply.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Final, NamedTuple, final

from longspan.scenarios.histories.history import History, Session, Utterance

__all__ = ["ROLES", "ToldTurn", "as_text", "between_people", "format_moment", "hash_history", "places_by_turn", "tell_turns"]

ROLES: Final = frozenset({"user", "assistant", "system"})
BEGINS: Final = "(The assistant speaks first.)"
"""The user's message where the assistant begins a session."""
NOTHING: Final = "(...)"
"""The message for a turn without words."""


@final
class ToldTurn(NamedTuple):
    """A turn as presented: the message and its reply.

    `session`: the index of its session. `turns`: ids of the history's turns in it. `at`: the session's start, if this is its first turn
    and the start is known.
    """

    message: str
    reply: str
    session: int
    turns: tuple[str, ...]
    at: datetime | None = None


def between_people(history: History) -> bool:
    """Return whether a history is a conversation between people, without an assistant."""
    return any(turn.speaker not in ROLES for turn in history.turns)


def tell_turns(history: History) -> list[ToldTurn]:
    """Return a history's turns as presented. Each turn of the history is in exactly one of them."""
    told: list[ToldTurn] = []
    people = between_people(history)
    for number, session in enumerate(history.sessions):
        exchanges = _each(session.turns) if people else _exchanges(session.turns)
        for first, (message, reply, turns) in enumerate(exchanges):
            told.append(ToldTurn(message, reply, number, turns, None if first else session.at))
    return told


def places_by_turn(told: Iterable[ToldTurn]) -> dict[str, int]:
    """Return the index of the presented turn that contains each turn of the history, by id."""
    return {turn: place for place, each in enumerate(told) for turn in each.turns}


_Exchange = tuple[str, str, tuple[str, ...]]
"""A message, its reply, and the ids of the turns in them."""


def _each(turns: Iterable[Utterance]) -> Iterator[_Exchange]:
    for turn in turns:
        yield f"{turn.speaker}: {_visible_text(turn)}", "", (turn.id,)


def _exchanges(turns: Sequence[Utterance]) -> Iterator[_Exchange]:
    """Pair messages with replies.

    A system message is put before the next user message. Consecutive replies are joined.
    """
    system: list[Utterance] = []
    message: list[Utterance] = []
    replies: list[Utterance] = []
    for turn in turns:
        if turn.speaker == "assistant":
            replies.append(turn)
            continue
        if message or replies:
            yield _exchange(system, message, replies)
            system, message, replies = [], [], []
        (message if turn.speaker == "user" else system).append(turn)
    if system or message or replies:
        yield _exchange(system, message, replies)


def _exchange(system: Sequence[Utterance], message: Sequence[Utterance], replies: Sequence[Utterance]) -> _Exchange:
    said = [f"[System: {_visible_text(turn)}]" for turn in system] + [_visible_text(turn) for turn in message]
    text = "\n\n".join(said or [BEGINS])
    return text, "\n\n".join(map(_visible_text, replies)), tuple(turn.id for turn in (*system, *message, *replies))


def _visible_text(turn: Utterance) -> str:
    """Return the visible content of a turn: its text, and the caption of its picture."""
    text = turn.text if turn.text.strip() else ""
    picture = f"[shares a picture: {turn.image}]" if turn.image else ""
    return f"{text} {picture}".strip() if picture else text or NOTHING


def as_text(history: History) -> str:
    """Return a history as one text: sessions with their dates, turns with their speakers."""
    return "\n\n".join(_session(session, number) for number, session in enumerate(history.sessions, 1))


def _session(session: Session, number: int) -> str:
    head = f"Session {number}" if session.at is None else f"Session {number}, {format_moment(session.at)}"
    return "\n".join([f"{head}:", *(f"{_name(turn.speaker)}: {_visible_text(turn)}" for turn in session.turns)])


def _name(speaker: str) -> str:
    return speaker.capitalize() if speaker in ROLES else speaker


def format_moment(at: datetime) -> str:
    """Return a date and time as shown to the agent, such as `2023-05-08 (Mon) 13:56`."""
    day = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[at.weekday()]
    return f"{at.date().isoformat()} ({day}) {at.hour:02}:{at.minute:02}"


def hash_history(history: History) -> str:
    """Return the SHA-256 of a history's sessions and questions, in hexadecimal."""
    content = json.dumps(history, sort_keys=True, default=_plain)
    return hashlib.sha256(content.encode()).hexdigest()


def _plain(value: object) -> object:
    """Return a part of a history as JSON types. `asdict` would copy the whole history first."""
    return {field.name: getattr(value, field.name) for field in fields(value)} if is_dataclass(value) else str(value)
