"""How a recorded history is told to an agent: turn by turn, or as one text.

A conversation between a user and an assistant is told as such: each message of the user with the reply that it got. In one between
people nobody is the assistant: each turn is a message of its own, which names its speaker and has no reply.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Final, NamedTuple, final

from longspan.scenarios.histories.history import History, Session, Utterance

__all__ = ["Told", "as_text", "between_people", "digest", "places", "tell", "written"]

ROLES: Final = frozenset({"user", "assistant", "system"})
BEGINS: Final = "(The assistant speaks first.)"
"""The user's message where a session begins with the assistant."""
NOTHING: Final = "(...)"
"""The message of a turn without words."""


@final
class Told(NamedTuple):
    """A turn as it is told: the message and its reply. `session`: the number of its session, from 0. `turns`: the ids of the history's
    turns in it.

    `at`: when the session began, if this is its first turn and that is known.
    """

    message: str
    reply: str
    session: int
    turns: tuple[str, ...]
    at: datetime | None = None


def between_people(history: History) -> bool:
    """Return whether a history is a conversation between people, without an assistant."""
    return any(turn.speaker not in ROLES for turn in history.turns)


def tell(history: History) -> list[Told]:
    """Return a history's turns as they are told. Each turn of the history is in exactly one of them."""
    told: list[Told] = []
    people = between_people(history)
    for number, session in enumerate(history.sessions):
        exchanges = _each(session.turns) if people else _exchanges(session.turns)
        for first, (message, reply, turns) in enumerate(exchanges):
            told.append(Told(message, reply, number, turns, None if first else session.at))
    return told


def places(told: Iterable[Told]) -> dict[str, int]:
    """Return the place, from 0, where each turn of a history is told, by the turn's id."""
    return {turn: place for place, each in enumerate(told) for turn in each.turns}


_Exchange = tuple[str, str, tuple[str, ...]]
"""A message, its reply, and the ids of the turns that they hold."""


def _each(turns: Iterable[Utterance]) -> Iterator[_Exchange]:
    for turn in turns:
        yield f"{turn.speaker}: {_shown(turn)}", "", (turn.id,)


def _exchanges(turns: Sequence[Utterance]) -> Iterator[_Exchange]:
    """Put replies to the messages before them.

    A system message is put before the user's next one. Replies that follow each other are one.
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
    said = [f"[System: {_shown(turn)}]" for turn in system] + [_shown(turn) for turn in message]
    text = "\n\n".join(said or [BEGINS])
    return text, "\n\n".join(map(_shown, replies)), tuple(turn.id for turn in (*system, *message, *replies))


def _shown(turn: Utterance) -> str:
    """Return the visible content of a turn: its text, and the caption of its picture."""
    text = turn.text if turn.text.strip() else ""
    picture = f"[shares a picture: {turn.image}]" if turn.image else ""
    return f"{text} {picture}".strip() if picture else text or NOTHING


def as_text(history: History) -> str:
    """Return a history as one text: its sessions with their dates, its turns with their speakers."""
    return "\n\n".join(_session(session, number) for number, session in enumerate(history.sessions, 1))


def _session(session: Session, number: int) -> str:
    head = f"Session {number}" if session.at is None else f"Session {number}, {written(session.at)}"
    return "\n".join([f"{head}:", *(f"{_name(turn.speaker)}: {_shown(turn)}" for turn in session.turns)])


def _name(speaker: str) -> str:
    return speaker.capitalize() if speaker in ROLES else speaker


def written(at: datetime) -> str:
    """Return a date and time as the agent is shown it, such as `2023-05-08 (Mon) 13:56`."""
    day = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[at.weekday()]
    return f"{at.date().isoformat()} ({day}) {at.hour:02}:{at.minute:02}"


def digest(history: History) -> str:
    """Return the SHA-256, in hexadecimal, of a history's sessions and questions."""
    content = json.dumps(history, sort_keys=True, default=_plain)
    return hashlib.sha256(content.encode()).hexdigest()


def _plain(value: object) -> object:
    """Return a part of a history as JSON's types. `asdict` would copy all of it at once."""
    return {field.name: getattr(value, field.name) for field in fields(value)} if is_dataclass(value) else str(value)
