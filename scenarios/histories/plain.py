"""Read users' own logs: sessions or exported messages, and questions, as JSON or JSON lines.

docs/reference/history-formats.md describes the formats.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, Self, final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from longspan.scenarios.histories.data_files import Source, blame_value, find_only
from longspan.scenarios.histories.exported import ExportedMessage, is_message, messages_of, read_message, split_sessions, time_of
from longspan.scenarios.histories.history import History, Question, Session, Utterance
from longspan.scenarios.histories.repairs import drop_backward_dates, number_duplicates
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.files.file_io import parse_json

__all__ = ["read_plain"]

EXPECTED: Final = 'messages such as {"role": "user", "content": "..."} and questions such as {"question": "...", "answer": "..."}'
KEYS: Final = "turns, messages, role and content, or question"
"""Keys that identify the kind of a line. Each line must have one of them."""
MARK: Final = b"\xef\xbb\xbf"
"""The byte order mark that some programs write before UTF-8."""


def _time(value: Any) -> Any:
    """Parse a time and drop its time zone, because virtual time has none."""
    if not isinstance(value, str):
        raise ValueError("must be a string such as 2024-01-31T09:00")
    try:
        return datetime.fromisoformat(value).replace(tzinfo=None)
    except ValueError:
        raise ValueError("must be a date and time, such as 2024-01-31T09:00") from None


MAX_NAME: Final = 200

Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
Time = Annotated[datetime, BeforeValidator(_time)]


class _ConversationPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    conversation: Name = "1"
    at: Time | None = None


@final
class _MessageRow(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    speaker: Name
    text: str
    id: Name | None = None


@final
class _Session(_ConversationPart):
    session: Name | None = None
    turns: list[_MessageRow] = Field(min_length=1)


@final
class _Question(_ConversationPart):
    question: str = Field(pattern=r"\S")
    answer: str | None = None
    id: Name | None = None
    kind: Annotated[str, Field(max_length=200)] = ""
    evidence: list[str] = []
    options: list[str] = Field(default=[], max_length=26)
    rubric: list[str] = []
    answerable: bool = True

    @model_validator(mode="after")
    def _gradable(self) -> Self:
        if self.answer is None and not self.rubric and self.answerable:
            raise ValueError("needs an answer or a rubric, or answerable: false")
        if self.options and self.answer not in self.options:
            raise ValueError("answer must be one of the options")
        return self


@final
class _Turn(NamedTuple):
    """A turn with its place in the file. Its id is None if the file gives none."""

    place: str
    id: str | None
    speaker: str
    text: str


@final
class _Part(NamedTuple):
    """A session with its place in the file. Its id is None if the file gives none."""

    place: str
    id: str | None
    at: datetime | None
    turns: Sequence[_Turn]


@final
@dataclass
class _Log:
    """The contents of a file for one conversation. `exported`: its sessions come from another program."""

    parts: list[_Part] = field(default_factory=list)
    questions: list[tuple[str, _Question]] = field(default_factory=list)
    exported: bool = False
    tools: int = 0
    empty: int = 0

    def add(self, messages: list[ExportedMessage], at: datetime | None = None) -> None:
        """Add consecutive messages as one session or more. `at`: their start, if they have no times."""
        self.exported = True
        self.tools += sum(not message.speaker for message in messages)
        self.empty += sum(bool(message.speaker) and not message.text.strip() for message in messages)
        for session in split_sessions([message for message in messages if message.speaker and message.text.strip()]):
            turns = [_Turn(each.place, each.id if len(each.id or "") <= MAX_NAME else None, each.speaker, each.text) for each in session]
            began = next((message.at for message in session if message.at is not None), at)
            self.parts.append(_Part(session[0].place, None, began, turns))

    def history(self, id: str, file: str) -> History:
        """Return the history. Raises InputError if it has no turns or questions, or if an id is used twice."""
        where = f"{file}, conversation {id!r}"
        if not self.questions:
            raise InputError(
                f'{where}: has no questions; add some, such as {{"question": "...", "answer": "..."}}, each on a separate line'
            )
        # Ids are assigned once the whole conversation is known, because a later line may give an id that equals a default one.
        sessions, remarks = self._sessions(file), []
        if self.exported and any(one.at and other.at and other.at < one.at for one, other in pairwise(sessions)):
            dated = all(session.at for session in sessions)
            sessions, back = (tuple(sorted(sessions, key=_began)), 0) if dated else drop_backward_dates(sessions)
            remarks.append(
                f"dates left out because they lie before an earlier session's: {back}" if back else "sessions are put in the order of time"
            )
        remarks += [f"messages of tools that were left out: {self.tools}"] * bool(self.tools)
        remarks += [f"messages without a text that were left out: {self.empty}"] * bool(self.empty)
        turns = {turn.id for session in sessions for turn in session.turns}
        ids = _assign_ids(file, [(place, each.id, str(number)) for number, (place, each) in enumerate(self.questions, 1)])
        asked = tuple(_question(place, each, own, turns) for (place, each), own in zip(self.questions, ids, strict=True))
        with blame_value(where):
            return History(id, sessions, asked, tuple(remarks))

    def _sessions(self, file: str) -> tuple[Session, ...]:
        ids = _assign_ids(file, [(part.place, part.id, str(number)) for number, part in enumerate(self.parts, 1)])
        turns = [
            (turn.place, turn.id, f"{id}:{number}")
            for id, part in zip(ids, self.parts, strict=True)
            for number, turn in enumerate(part.turns, 1)
        ]
        own = iter(_assign_ids(file, turns))
        return tuple(
            Session(id, part.at, tuple(Utterance(next(own), turn.speaker, turn.text) for turn in part.turns))
            for id, part in zip(ids, self.parts, strict=True)
        )


def _assign_ids(file: str, things: Sequence[tuple[str, str | None, str]]) -> list[str]:
    """Return ids for things of one kind, each given as its place, the id in the file, and a default.

    A default that is already another thing's id gets a suffix, as in `1:2#2`. Raises InputError if the file uses an id twice.
    """
    places: dict[str, str] = {}
    for place, id, _ in things:
        if id is not None and id in places:
            other = places[id].removeprefix(f"{file}, ")
            raise InputError(f"{place}: its id {id!r:.80} is also the id of {other}; change one of the two ids, or remove it")
        if id is not None:
            places[id] = place
    unique = iter(number_duplicates([*places, *(default for _, id, default in things if id is None)])[len(places) :])
    return [next(unique) if id is None else id for _, id, _ in things]


def read_plain(path: Path) -> Iterator[History]:
    """Yield the conversations of a file, in order. Raises InputError, naming the line at fault."""
    source = find_only(path, ".jsonl", EXPECTED)
    logs: dict[str, _Log] = {}
    loose: list[ExportedMessage] = []  # consecutive single-line messages, not yet added to a log
    of = ""
    for where, value in _values(source):
        with blame_value(where):
            if is_message(value):
                if loose and _of(value) != of:
                    logs.setdefault(of, _Log()).add(loose)
                    loose = []
                of = _of(value)
                loose.append(read_message(value, where))
                continue
            if loose:
                logs.setdefault(of, _Log()).add(loose)
                loose = []
        _add(logs, where, value)
    if loose:
        logs.setdefault(of, _Log()).add(loose)
    if not logs:
        raise InputError(f"{source.where}: is empty; expected {EXPECTED}")
    for id, log in logs.items():
        yield log.history(id, source.where)


def _values(source: Source) -> Iterator[tuple[str, Any]]:
    """Yield the values of a file's lines, or the items if the file is a single value, each with its place. Raises InputError."""
    content = source.content().removeprefix(MARK)
    whole = _whole(content.strip(), source.where)
    if whole is not None:
        yield from ((f"{source.where}, item {number}", item) for number, item in enumerate(whole, 1))
        return
    for number, line in enumerate(BytesIO(content), 1):
        if line.strip():
            where = f"{source.where}, line {number}"
            yield where, parse_json(line, where, unique=True)


def _whole(content: bytes, where: str) -> list[Any] | None:
    """Return the items of a file that is one list, or one object over several lines; None for JSON lines. Raises InputError."""
    first, more, _ = content.partition(b"\n")
    if more and _is_json(first):
        return None
    if content.startswith(b"["):
        items: list[Any] = parse_json(content, where, unique=True)
        return items
    return [parse_json(content, where, unique=True)] if more and _is_json(content) else None


def _is_json(content: bytes) -> bool:
    try:
        json.loads(content)
    except (ValueError, RecursionError):
        return False
    return True


def _add(logs: dict[str, _Log], where: str, value: Any) -> None:
    """Add a line that is not a message. Raises InputError."""
    with blame_value(where):
        if not isinstance(value, dict | list):
            raise ValueError(f"must be an object; expected {EXPECTED}")
        if isinstance(value, dict) and "turns" in value:
            session = _Session.model_validate(value)
            turns = [_Turn(f"{where}, turn {number}", said.id, said.speaker, said.text) for number, said in enumerate(session.turns, 1)]
            logs.setdefault(session.conversation, _Log()).parts.append(_Part(where, session.session, session.at, turns))
            return
        messages = value if isinstance(value, list) else messages_of(value)
        if messages is None and isinstance(value, dict) and "question" in value:
            question = _Question.model_validate(value)
            logs.setdefault(question.conversation, _Log()).questions.append((where, question))
            return
        if messages is None:
            raise ValueError(f"has none of the keys {KEYS}, but {', '.join(map(repr, value)) or 'nothing'}"[:300])
        at = time_of(value) if isinstance(value, dict) else None
    said = []
    for number, message in enumerate(messages, 1):
        place = f"{where}, message {number}"
        with blame_value(place):
            said.append(read_message(message, place)._replace(thread=None))
    log = logs.setdefault(_of(value), _Log())
    log.add(said, at)
    asked = value.get("questions", []) if isinstance(value, dict) else []
    for number, each in enumerate(asked if isinstance(asked, list) else [asked], 1):
        with blame_value(f"{where}, question {number}"):
            log.questions.append((f"{where}, question {number}", _Question.model_validate(each)))


def _of(value: Any) -> str:
    """Return the conversation that a message belongs to."""
    named = value.get("conversation") if isinstance(value, Mapping) else None
    return named if isinstance(named, str) and 0 < len(named) <= MAX_NAME else "1"


def _began(session: Session) -> datetime:
    return session.at or datetime.min


def _question(where: str, asked: _Question, id: str, turns: set[str]) -> Question:
    stray = next((label for label in asked.evidence if label not in turns), None)
    if stray is not None:
        raise InputError(f"{where}: evidence {stray!r:.80} names no turn of conversation {asked.conversation!r}")
    return Question(
        id=id,
        text=asked.question,
        answer=asked.answer,
        kind=asked.kind,
        at=asked.at,
        evidence=tuple(dict.fromkeys(asked.evidence)),
        options=tuple(asked.options),
        rubric=tuple(asked.rubric),
        answerable=asked.answerable,
    )
