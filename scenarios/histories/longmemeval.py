"""Read LongMemEval (Wu et al., 2025) as published: `longmemeval_s.json`, `longmemeval_oracle.json`, or an archive that contains one of
them.

Each question has its own history: sessions of a user with an assistant.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final, Literal, Self, final

from pydantic import BeforeValidator, Field, model_validator

from longspan.scenarios.histories.data_files import PublishedPart, blame_value, entry_name, find_only
from longspan.scenarios.histories.history import History, Question, Session, Utterance
from longspan.scenarios.histories.repairs import number_duplicates, parse_date, sort_labels
from longspan.simulator.base.errors import InputError

__all__ = ["read_longmemeval"]

DATES: Final = ("%Y/%m/%d (%a) %H:%M", "%Y/%m/%d")
ABSTENTION: Final = "_abs"
"""Suffix of the ids of questions that the history does not answer."""

Answer = Annotated[str, BeforeValidator(lambda value: str(value) if type(value) in (int, float) else value)]


@final
class _MessageRow(PublishedPart):
    role: Literal["user", "assistant"]
    content: str
    has_answer: bool | None = None


@final
class _QuestionRow(PublishedPart):
    question_id: str = Field(min_length=1)
    question_type: str
    question: str
    answer: Answer
    question_date: str
    haystack_session_ids: list[str]
    haystack_dates: list[str]
    haystack_sessions: list[list[_MessageRow]]
    answer_session_ids: list[str]

    @model_validator(mode="after")
    def _check_fit(self) -> Self:
        counts = [len(self.haystack_session_ids), len(self.haystack_dates), len(self.haystack_sessions)]
        if len(set(counts)) > 1:
            raise ValueError(f"haystack_session_ids, haystack_dates and haystack_sessions must have the same length, got {counts}")
        return self


def read_longmemeval(path: Path) -> Iterator[History]:
    """Yield a history for each question of a file. Raises InputError, naming the question at fault."""
    source = find_only(path, ".json", "one of LongMemEval's files, such as longmemeval_s.json")
    asked = source.json()
    if not isinstance(asked, list):
        raise InputError(f"{source.where}: not LongMemEval's data: expected a list of questions")
    for number, value in enumerate(asked):
        with blame_value(f"{source.where}, question {entry_name(value, 'question_id', number)}"):
            history = _history(_QuestionRow.model_validate(value))
        yield history


def _history(asked: _QuestionRow) -> History:
    ids = number_duplicates(asked.haystack_session_ids)
    sessions, evidence = [], []
    for id, at, said in zip(ids, asked.haystack_dates, asked.haystack_sessions, strict=True):
        turns = tuple(Utterance(f"{id}_{number}", each.role, each.content) for number, each in enumerate(said, 1))
        sessions.append(Session(id, _date(at), turns))
        evidence += [turn.id for turn, each in zip(turns, said, strict=True) if each.has_answer]
    labels = sort_labels(asked.answer_session_ids, asked.haystack_session_ids)
    question = Question(
        id=asked.question_id,
        text=asked.question,
        answer=asked.answer,
        kind=asked.question_type,
        at=_date(asked.question_date),
        evidence=tuple(evidence),
        sessions=labels.known,
        unknown=labels.unknown,
        answerable=not asked.question_id.endswith(ABSTENTION),
    )
    ordered = sorted(sessions, key=lambda session: session.at or datetime.min)  # longmemeval_oracle.json is not in chronological order
    again = len(set(ids) - set(asked.haystack_session_ids))
    remarks = (f"sessions that had the id of another, and were given their own: {again}",) if again else ()
    return History(asked.question_id, tuple(ordered), (question,), remarks)


def _date(text: str) -> datetime:
    found = parse_date(text, *DATES)
    if found is None:
        raise ValueError(f"{text!r:.80} is not a date such as 2023/05/20 (Sat) 02:21")
    return found
