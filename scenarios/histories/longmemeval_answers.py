"""Read released answers to LongMemEval's questions with verdicts, and files of the questions.

Answers come in two formats: rows with `correct`, and the JSON lines with `autoeval_label` that the authors' evaluation writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Annotated, Any, Final, NamedTuple, final

from pydantic import BeforeValidator, Field

from longspan.scenarios.histories.data_files import PublishedPart, Source, blame_value
from longspan.scenarios.histories.longmemeval import ABSTENTION
from longspan.scenarios.histories.released_answers import ReleasedAnswer, ReleasedFile, check_answers
from longspan.simulator.base.errors import InputError

__all__ = ["ABSTAINS", "EXPECTED", "GoldQuestion", "questions_in", "read_answers", "value_of"]

ABSTAINS: Final = "abstention"
"""Kind of all questions that cannot be answered, overriding their published kind."""

EXPECTED: Final = "rows with question_id and correct"

Text = Annotated[str, BeforeValidator(lambda value: str(value) if type(value) in (int, float) else value)]


@final
class GoldQuestion(NamedTuple):
    """A question's kind, text and gold answer. Unanswerable questions are a separate kind."""

    kind: str
    text: str = ""
    gold: str = ""


@final
class _Row(PublishedPart):
    question_id: str = Field(min_length=1)
    category: str
    correct: bool
    hypothesis: str = ""
    gold: Text | None = None


@final
class _Label(PublishedPart):
    label: bool


@final
class _EvaluatedRow(PublishedPart):
    question_id: str = Field(min_length=1)
    hypothesis: str
    autoeval_label: _Label


def value_of(source: Source) -> Any:
    """Return a file's JSON value, or the list of values in a file of JSON lines. Raises InputError."""
    with suppress(InputError):  # not a single JSON value, so it may be JSON lines
        return source.json()
    return [value for _, value in source.lines()]


def questions_in(value: Any) -> dict[str, GoldQuestion]:
    """Return the questions in a file, by id. Accepts the authors' file and a variant with other key names; empty for other files."""
    found = {}
    for each in value if isinstance(value, list) else ():
        if not isinstance(each, dict):
            return {}
        meta = each.get("meta") if isinstance(each.get("meta"), dict) else {}
        id, kind = each.get("question_id", each.get("id")), each.get("question_type", (meta or {}).get("question_type"))
        if not (isinstance(id, str) and isinstance(kind, str)):
            return {}
        text, gold = each.get("question", each.get("query")), each.get("answer", _first(each.get("gold_answers")))
        found[id] = GoldQuestion(ABSTAINS if id.endswith(ABSTENTION) else kind, _text(text), _text(gold))
    return found


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else None


def _text(value: Any) -> str:
    return str(value) if type(value) in (str, int, float) else ""


def read_answers(name: str, where: str, value: Any, asked: Mapping[str, GoldQuestion]) -> ReleasedFile | None:
    """Return a file's answers, or None if its format is another. Raises InputError if the format is known but the content is invalid."""
    first = value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else {}
    if first.keys() >= {"question_id", "correct"}:
        return ReleasedFile(name, check_answers(where, _rows(where, value, asked)), {})
    if first.keys() >= {"question_id", "autoeval_label"}:
        return ReleasedFile(name, check_answers(where, _read_evaluated(where, value, asked)), {})
    return None


def _rows(where: str, value: list[Any], asked: Mapping[str, GoldQuestion]) -> Iterator[ReleasedAnswer]:
    for number, each in enumerate(value):
        with blame_value(f"{where}, row {number}"):
            row = _Row.model_validate(each)
        question = asked.get(row.question_id, GoldQuestion(""))
        yield ReleasedAnswer(
            row.question_id,
            row.question_id,
            row.category,
            {"correct": row.correct},
            row.hypothesis,
            text=question.text,
            gold=row.gold or question.gold,
        )


def _read_evaluated(where: str, value: list[Any], asked: Mapping[str, GoldQuestion]) -> Iterator[ReleasedAnswer]:
    for number, each in enumerate(value):
        with blame_value(f"{where}, row {number}"):
            row = _EvaluatedRow.model_validate(each)
        question, verdicts = asked.get(row.question_id, GoldQuestion("")), {"autoeval_label": row.autoeval_label.label}
        yield ReleasedAnswer(
            row.question_id, row.question_id, question.kind, verdicts, row.hypothesis, text=question.text, gold=question.gold
        )
