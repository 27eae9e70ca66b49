"""Read LoCoMo (Maharana et al., 2024) as published: `locomo10.json`, or the zip that contains it.

It has ten conversations between two people. A turn that shares a picture includes its caption.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, final

from pydantic import BeforeValidator, Field

from longspan.scenarios.histories.data_files import PublishedPart, blame_value, entry_name, find_only
from longspan.scenarios.histories.history import History, Question, Session, Utterance
from longspan.scenarios.histories.repairs import drop_backward_dates, parse_date, sort_labels
from longspan.simulator.base.errors import InputError

__all__ = ["KINDS", "read_locomo"]

KINDS: Final[Mapping[int, str]] = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
"""Kinds of questions by their number in the file. The file does not name them; they were matched by the counts in the paper."""

DATE: Final = "%I:%M %p on %d %B, %Y"

_DATED: Final = "_date_time"
_SESSION: Final = re.compile(r"session_([0-9]{1,6})")
_LABEL: Final = re.compile(r"[^\s;,]+")
"""Some labels contain several ids: "D8:6; D9:17", "D9:1 D4:4 D4:6"."""

Answer = Annotated[str | None, BeforeValidator(lambda value: str(value) if type(value) is int else value)]


@final
class _MessageRow(PublishedPart):
    speaker: str = Field(min_length=1)
    dia_id: str = Field(min_length=1)
    text: str
    blip_caption: str = ""


@final
class _QuestionRow(PublishedPart):
    question: str
    answer: Answer = None
    adversarial_answer: Answer = None
    evidence: list[str] = Field(default_factory=list)
    category: Literal[1, 2, 3, 4, 5]


@final
class _Sample(PublishedPart):
    sample_id: str = Field(default="", max_length=200)
    conversation: dict[str, Any]
    qa: list[_QuestionRow]


@final
class _Talk(PublishedPart):
    turns: list[_MessageRow]
    at: str | None


def read_locomo(path: Path) -> Iterator[History]:
    """Yield the conversations of a file. Raises InputError, naming the conversation at fault."""
    source = find_only(path, ".json", "LoCoMo's locomo10.json")
    samples = source.json()
    if not isinstance(samples, list):
        raise InputError(f"{source.where}: not LoCoMo's data: expected a list of conversations")
    for number, value in enumerate(samples):
        where = f"{source.where}, conversation {entry_name(value, 'sample_id', number)}"
        with blame_value(where):
            history = _history(where, number, _Sample.model_validate(value))
        yield history


def _history(where: str, number: int, sample: _Sample) -> History:
    numbers = sorted(int(match[1]) for key in sample.conversation if (match := _SESSION.fullmatch(key)))
    sessions, back = drop_backward_dates([_session(where, number, sample.conversation) for number in numbers])
    undated = sum(f"session_{number}{_DATED}" not in sample.conversation for number in numbers)
    idle = sum(key.endswith(_DATED) and key.removesuffix(_DATED) not in sample.conversation for key in sample.conversation)
    ids = [turn.id for session in sessions for turn in session.turns]
    remarks = {
        f"dates left out because they lie before an earlier session's: {back}": back,
        f"dates without a session: {idle}": idle,
        f"sessions without a date: {undated}": undated,
    }
    questions = tuple(_question(number, asked, ids) for number, asked in enumerate(sample.qa))
    return History(sample.sample_id or f"conv-{number}", sessions, questions, tuple(remark for remark, count in remarks.items() if count))


def _session(where: str, number: int, conversation: Mapping[str, Any]) -> Session:
    name = f"session_{number}"
    with blame_value(f"{where}, {name}"):
        found = _Talk.model_validate({"turns": conversation[name], "at": conversation.get(name + _DATED)})
        at = None if found.at is None else parse_date(found.at, DATE)
        if at is None and found.at is not None:
            raise ValueError(f"{found.at!r:.80} is not a date such as 1:56 pm on 8 May, 2023")
    return Session(name, at, tuple(Utterance(said.dia_id, said.speaker, said.text, said.blip_caption) for said in found.turns))


def _question(number: int, asked: _QuestionRow, turns: Iterable[str]) -> Question:
    labels = sort_labels((label for labels in asked.evidence for label in _LABEL.findall(labels)), turns)
    return Question(
        id=str(number),
        text=asked.question,
        answer=asked.answer,
        kind=KINDS[asked.category],
        evidence=labels.known,
        unknown=labels.unknown,
        answerable=asked.category != 5,
        trap=asked.adversarial_answer or "",
    )
