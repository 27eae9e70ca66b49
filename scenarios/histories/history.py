"""A recorded conversation with questions about it, independent of its source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import final

from longspan.simulator.base.fields import MAX_START

__all__ = ["History", "Question", "Session", "Utterance"]


@final
@dataclass(frozen=True, slots=True)
class Utterance:
    """A turn of one speaker: a name, or `user`, `assistant` or `system`. Its `id` is unique within the history.

    `image`: the caption of an attached picture, or empty.
    """

    id: str
    speaker: str
    text: str
    image: str = ""


@final
@dataclass(frozen=True, slots=True)
class Session:
    """A part of a conversation. `at`: its start without a time zone, or None if unknown."""

    id: str
    at: datetime | None
    turns: tuple[Utterance, ...]


@final
@dataclass(frozen=True, slots=True)
class Question:
    """A question about a history, asked after the whole of it.

    - answer: the gold answer, or None
    - kind: the benchmark's name for this kind of question
    - at: the time of asking, or None if unknown
    - evidence: ids of the turns that contain the answer
    - sessions: ids of the sessions that contain the answer, if sessions were labelled
    - unknown: published evidence labels that are missing from the history or ambiguous
    - options: the choices, if the answer is one of them
    - rubric: statements that a good answer makes
    - answerable: whether the history contains the answer; if not, a good reply says so
    - trap: the wrong answer that the question invites
    """

    id: str
    text: str
    answer: str | None
    kind: str = ""
    at: datetime | None = None
    evidence: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    rubric: tuple[str, ...] = ()
    answerable: bool = True
    trap: str = ""


@final
@dataclass(frozen=True, slots=True)
class History:
    """Sessions in chronological order, and questions about them. All ids are unique.

    `remarks`: changes made while reading, as sentences. Raises ValueError, naming the fault and its session, turn or question.
    """

    id: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        turns = {turn.id for turn in self.turns}
        sessions = {session.id for session in self.sessions}
        _unique("sessions", (session.id for session in self.sessions))
        _unique("turns", (turn.id for turn in self.turns))
        _unique("questions", (question.id for question in self.questions))
        if not turns or not self.questions:
            raise ValueError("has no turns" if not turns else "has no questions")
        _in_order(self.sessions)
        for turn in self.turns:
            _unicode(f"turn {turn.id!r:.80}", (turn.id, turn.speaker, turn.text, turn.image))
        for question in self.questions:
            _check(question, turns, sessions)

    def __str__(self) -> str:
        counts = {"session": len(self.sessions), "turn": len(self.turns), "question": len(self.questions)}
        text = f"{self.id}: {', '.join(f'{count} {what}' + 's' * (count != 1) for what, count in counts.items())}"
        return f"{text}; labels of evidence that name nothing in it: {self.unknown}" if self.unknown else text

    @property
    def turns(self) -> tuple[Utterance, ...]:
        """All turns in order."""
        return tuple(turn for session in self.sessions for turn in session.turns)

    @property
    def unknown(self) -> int:
        """Number of evidence labels that match nothing in the history."""
        return sum(len(question.unknown) for question in self.questions)


def _unique(what: str, ids: Iterable[str]) -> None:
    twice = next((id for id, count in Counter(ids).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"two {what} have the id {twice!r:.80}")


def _in_order(sessions: Iterable[Session]) -> None:
    last: datetime | None = None
    for session in sessions:
        if session.at is None:
            continue
        _timely(f"session {session.id!r:.80}", session.at)
        if last is not None and session.at < last:
            raise ValueError(f"session {session.id!r:.80} begins at {session.at}, before the preceding session ({last})")
        last = session.at


def _timely(where: str, at: datetime) -> None:
    if at.tzinfo is not None:
        raise ValueError(f"{where}: its time must have no time zone")
    if at >= MAX_START:  # virtual time continues after a history and must stay representable
        raise ValueError(f"{where}: its time must be before {MAX_START:%Y-%m-%d}")


def _unicode(where: str, texts: Iterable[str]) -> None:
    """Check that texts can be encoded as UTF-8."""
    try:
        for text in texts:
            text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{where}: {error.object[error.start]!r} is not valid Unicode") from None


def _check(question: Question, turns: set[str], sessions: set[str]) -> None:
    where = f"question {question.id!r:.80}"
    if not question.text.strip():
        raise ValueError(f"{where}: is empty")
    if question.at is not None:
        _timely(where, question.at)
    _unicode(where, (question.id, question.text, question.kind, question.answer or "", question.trap, *question.options, *question.rubric))
    for what, labels, known in (("turn", question.evidence, turns), ("session", question.sessions, sessions)):
        stray = next((label for label in labels if label not in known), None)
        if stray is not None:
            raise ValueError(f"{where}: its evidence {stray!r:.80} names no {what}")
    if question.options and question.answer not in question.options:
        raise ValueError(f"{where}: its answer is not one of its options")
