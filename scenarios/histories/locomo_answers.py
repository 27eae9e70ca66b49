"""Read released answers to LoCoMo's questions with verdicts, an audit of its gold answers, and the questions' own file.

Answers come in three formats: grouped by conversation with `llm_judgments` (from the audit, and from the harness that it checks), rows
with `correct`, and Zep's grades. A question is identified by the numbers of its conversation and itself, both from 0: `0/12`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple, final

from pydantic import BeforeValidator, Field

from longspan.scenarios.histories.data_files import PublishedPart, Source, blame_value
from longspan.scenarios.histories.released_answers import ReleasedAnswer, ReleasedFile, check_answers
from longspan.simulator.base.errors import InputError

__all__ = [
    "ADVERSARIAL",
    "CONVERSATIONS",
    "EXPECTED",
    "Correction",
    "Gold",
    "is_audit",
    "is_gold",
    "is_graded",
    "read_answers",
    "read_corrections",
    "read_gold",
]

CONVERSATIONS: Final = ("conv-26", "conv-30", "conv-41", "conv-42", "conv-43", "conv-44", "conv-47", "conv-48", "conv-49", "conv-50")
"""Ids of LoCoMo's conversations, in the order of its file."""

ADVERSARIAL: Final = "5"
RIGHT_GOLD: Final = "WRONG_CITATION"
"""The audit's label for entries whose evidence is wrong but whose gold answer is right."""

ZEP: Final = {"overall": 0.7514, "1": 0.7411, "2": 0.6604, "3": 0.6771, "4": 0.7979}
"""Accuracies that Zep published for `zep_locomo_grades`, means over runs, by LoCoMo's category numbers. Zep's own category names are
mixed up."""

EXPECTED: Final = "rows with llm_judgments, correct or grade"

_GROUP: Final = re.compile(r"\D{0,80}([0-9]{1,3})")
_ID: Final = re.compile(r"locomo_([0-9]{1,3})_qa([0-9]{1,5})")

Text = Annotated[str, BeforeValidator(lambda value: str(value) if type(value) in (int, float) else value)]
Share = Annotated[float, Field(ge=0, le=1)]


@final
class _JudgedRow(PublishedPart):
    question_id: str = Field(pattern=_ID.pattern)
    category: Text
    question: str = ""
    golden_answer: Text = ""
    generated_answer: str = ""
    llm_judgments: dict[Annotated[str, Field(max_length=80)], bool] = Field(min_length=1)


@final
class _StatedAccuracy(PublishedPart):
    mean: Share


@final
class _Metadata(PublishedPart):
    category_accuracies: dict[str, _StatedAccuracy] = Field(default_factory=dict)


@final
class _Results(PublishedPart):
    detailed_results: dict[str, list[_JudgedRow]]
    accuracy: Share | None = None
    metadata: _Metadata = Field(default_factory=_Metadata)


@final
class _Row(PublishedPart):
    conv_id: str
    qa_index: int = Field(ge=0)
    category: Text
    correct: bool
    category_id: int | None = None
    adversarial: bool = False
    hypothesis: str = ""
    gold: Text | None = None


@final
class _Grade(PublishedPart):
    question: str
    grade: bool
    answer: str | None = None
    golden_answer: Text | None = None


@final
class _Entry(PublishedPart):
    question_id: str = Field(pattern=_ID.pattern)
    error_type: str
    question: str = ""
    correct_answer: Text | None = None


@final
class _QuestionRow(PublishedPart):
    question: str
    category: int
    answer: Text | None = None


@final
class Correction(NamedTuple):
    """A question whose gold answer is wrong, and the right answer, or None if the audit gives none."""

    question: str
    answer: str | None


@final
class Gold(NamedTuple):
    """Text, gold answer and category of each question in each conversation."""

    conversations: Sequence[Sequence[tuple[str, str | None, str]]]


def is_gold(value: Any) -> bool:
    """Return whether a JSON value is LoCoMo's own file."""
    return _first_of(value).keys() >= {"qa", "conversation"}


def is_audit(value: Any) -> bool:
    """Return whether a JSON value is the audit of gold answers."""
    return _first_of(value).keys() >= {"question_id", "error_type"}


def is_graded(value: Any) -> bool:
    """Return whether a JSON value contains grades in Zep's format, which lacks categories."""
    return isinstance(value, dict) and any(_first_of(rows).keys() >= {"question", "grade"} for rows in value.values())


def _first_of(value: Any) -> Mapping[Any, Any]:
    return value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else {}


def read_gold(source: Source, value: list[Any]) -> Gold:
    """Return LoCoMo's questions. Raises InputError."""
    found = []
    for number, sample in enumerate(value):
        with blame_value(f"{source.where}, conversation {number}"):
            questions = sample.get("qa") if isinstance(sample, dict) else None
            if not isinstance(questions, list):
                raise ValueError("qa must be a list of questions")
            asked = [_QuestionRow.model_validate(question) for question in questions]
        found.append([(each.question, each.answer, str(each.category)) for each in asked])
    return Gold(found)


def read_corrections(source: Source, value: list[Any]) -> dict[str, Correction]:
    """Return the questions whose gold answer is wrong according to the audit, by id. Raises InputError."""
    found = []
    for number, entry in enumerate(value):
        with blame_value(f"{source.where}, entry {number}"):
            found.append(_Entry.model_validate(entry))
    wrong_gold = [entry for entry in found if entry.error_type != RIGHT_GOLD]
    return {_name(entry.question_id): Correction(entry.question, entry.correct_answer) for entry in wrong_gold}


def _name(id: str) -> str:
    conversation, number = map(int, id.removeprefix("locomo_").split("_qa"))
    return f"{conversation}/{number}"


def read_answers(name: str, source: Source, value: Any, gold: Gold | None) -> ReleasedFile | None:
    """Return a file's answers, or None if its format is another. Raises InputError if the format is known but the content is invalid."""
    if isinstance(value, dict) and "detailed_results" in value:
        return _read_judged(name, source.where, value)
    if _first_of(value).keys() >= {"conv_id", "qa_index", "correct"}:
        return ReleasedFile(name, check_answers(source.where, _rows(source.where, value)), {})
    if is_graded(value):
        answers = [answer for key, rows in value.items() for answer in _read_graded(source.where, key, rows, gold)]
        return ReleasedFile(name, check_answers(source.where, answers), ZEP if name == "zep_locomo_grades" else {})
    return None


def _read_judged(name: str, where: str, value: Any) -> ReleasedFile:
    with blame_value(where):
        results = _Results.model_validate(value)
    answers = [
        ReleasedAnswer(
            question=(question := _name(row.question_id)),
            conversation=question.partition("/")[0],
            kind=row.category,
            verdicts=row.llm_judgments,
            reply=row.generated_answer,
            adversarial=row.category == ADVERSARIAL,
            text=row.question,
            gold=row.golden_answer,
        )
        for rows in results.detailed_results.values()
        for row in rows
    ]
    stated = {} if results.accuracy is None else {"overall": results.accuracy}
    stated |= {kind: each.mean for kind, each in results.metadata.category_accuracies.items()}
    return ReleasedFile(name, check_answers(where, answers), stated)


def _rows(where: str, value: list[Any]) -> Iterator[ReleasedAnswer]:
    for number, each in enumerate(value):
        with blame_value(f"{where}, row {number}"):
            row = _Row.model_validate(each)
            if row.conv_id not in CONVERSATIONS:
                raise ValueError(f"conv_id {row.conv_id!r:.80} is not a conversation of LoCoMo")
        conversation = str(CONVERSATIONS.index(row.conv_id))
        adversarial = row.adversarial or ADVERSARIAL in (str(row.category_id), row.category)
        yield ReleasedAnswer(
            f"{conversation}/{row.qa_index}",
            conversation,
            row.category,
            {"correct": row.correct},
            row.hypothesis,
            adversarial,
            gold=row.gold or "",
        )


def _read_graded(where: str, key: str, value: Any, gold: Gold | None) -> Iterator[ReleasedAnswer]:
    """Yield Zep's grades for a conversation. Their categories come from `gold`; without it, questions are identified by their row."""
    place = f"{where}, {key!r:.80}"
    match = _GROUP.fullmatch(key)
    if match is None or not isinstance(value, list):
        raise InputError(f"{place}: must be a list of grades under a conversation's number, such as locomo_experiment_user_0")
    conversation = int(match[1])
    if gold is not None and conversation >= len(gold.conversations):
        raise InputError(f"{place}: LoCoMo has only {len(gold.conversations)} conversations")
    taken: set[str] = set()
    for number, each in enumerate(value):
        with blame_value(f"{place}, row {number}"):
            row = _Grade.model_validate(each)
            question, kind = _place(row, gold.conversations[conversation], taken) if gold else (f"row {number}", "")
        taken.add(question)
        adversarial = kind == ADVERSARIAL or (gold is None and row.golden_answer is None)
        yield ReleasedAnswer(
            f"{conversation}/{question}",
            str(conversation),
            kind,
            {"grade": row.grade},
            row.answer or "",
            adversarial,
            row.question,
            row.golden_answer or "",
        )


def _place(row: _Grade, questions: Sequence[tuple[str, str | None, str]], taken: set[str]) -> tuple[str, str]:
    """Return the number and category of the question with a row's text.

    A few questions are asked twice, so one with the row's gold answer is preferred.
    """
    free = [(number, each) for number, each in enumerate(questions) if each[0] == row.question and str(number) not in taken]
    if not free:
        raise ValueError(f"{row.question!r:.80} is not among LoCoMo's questions of this conversation, or answered too often")
    number, (_, _, kind) = next((each for each in free if each[1][1] == row.golden_answer), free[0])
    return str(number), kind
