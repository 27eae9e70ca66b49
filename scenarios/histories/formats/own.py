"""longspan's plain form of a log: sessions and questions as JSON objects. Unknown keys are errors here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal, Self, final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from longspan.scenarios.histories.formats.assembly import Asked, Conversation, Part, Turn
from longspan.scenarios.histories.history import Question

__all__ = ["MAX_NAME", "NamedQuestion", "OwnRemarks", "OwnSession", "write_lines"]

MAX_NAME: Final = 200
"""Maximum length of an id or a speaker's name in characters."""


def _time(value: Any) -> Any:
    """Parse a time and drop its time zone, because virtual time has none."""
    if not isinstance(value, str):
        raise ValueError("must be a string such as 2024-01-31T09:00")
    try:
        return datetime.fromisoformat(value).replace(tzinfo=None)
    except ValueError:
        raise ValueError("must be a date and time, such as 2024-01-31T09:00") from None


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
    tool: Literal["call", "result"] | None = None


@final
class OwnSession(_ConversationPart):
    """A session."""

    session: Name | None = None
    turns: list[_MessageRow] = Field(min_length=1)

    def part(self, where: str) -> Part:
        """Return the session with its place in the file."""
        turns = [
            Turn(f"{where}, turn {number}", said.id, said.speaker, said.text, said.tool or "said")
            for number, said in enumerate(self.turns, 1)
        ]
        return Part(where, self.session, self.at, turns)


@final
class OwnRemarks(BaseModel):
    """What was changed or left out when a log was converted to this form."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    remarks: list[str]
    conversation: Name = "1"


@final
class NamedQuestion(_ConversationPart):
    """A question, for a log in any format. `before`: the turn before which it is asked. `confirmed`: whether a person has reviewed it."""

    question: str = Field(pattern=r"\S")
    answer: str | None = None
    id: Name | None = None
    kind: Annotated[str, Field(max_length=200)] = ""
    evidence: Annotated[list[str], BeforeValidator(lambda given: [given] if isinstance(given, str) else given)] = []
    options: list[str] = Field(default=[], max_length=26)
    rubric: list[str] = []
    answerable: bool = True
    before: Annotated[str, Field(pattern=r"\S")] | None = None
    confirmed: bool = False

    @model_validator(mode="after")
    def _gradable(self) -> Self:
        if self.answer is None and not self.rubric and self.answerable:
            raise ValueError("needs an answer or a rubric, or answerable: false")
        if self.options and self.answer not in self.options:
            raise ValueError("answer must be one of the options")
        return self

    def asked(self, where: str) -> Asked:
        """Return the question with its place in the file. Its id may be empty."""
        question = Question(
            id=self.id or "",
            text=self.question,
            answer=self.answer,
            kind=self.kind,
            at=self.at,
            evidence=tuple(dict.fromkeys(self.evidence)),
            options=tuple(self.options),
            rubric=tuple(self.rubric),
            answerable=self.answerable,
        )
        return Asked(where, question, self.before or "")


def write_lines(conversation: Conversation) -> Iterator[Mapping[str, Any]]:
    """Yield a conversation's lines in the plain form."""
    of = {} if conversation.id == "1" else {"conversation": conversation.id}
    if conversation.remarks:
        yield of | {"remarks": list(conversation.remarks)}
    for part in conversation.parts:
        at = {} if part.at is None else {"at": part.at.isoformat()}
        turns = [
            {"speaker": turn.speaker, "text": turn.text, "id": turn.id} | ({} if turn.kind == "said" else {"tool": turn.kind})
            for turn in part.turns
        ]
        yield of | at | {"session": part.id, "turns": turns}
    for question in conversation.questions:
        given = {
            "at": question.at and question.at.isoformat(),
            "answer": question.answer,
            "kind": question.kind,
            "evidence": list(question.evidence),
            "options": list(question.options),
            "rubric": list(question.rubric),
            "answerable": None if question.answerable else False,
            "before": conversation.befores.get(question.id),
        }
        kept = {key: value for key, value in given.items() if value is False or value}
        yield of | {"question": question.text, "id": question.id} | kept
