"""Judge prompts for answers to questions about histories: each benchmark's own procedure, in longspan's words.

Instructions, scale and tolerance follow the prompts in use with each benchmark:

- `locomo`: the usual prompt for LoCoMo, a generous CORRECT or WRONG (mem0's `evaluation/metrics/llm_judge.py`, widely copied).
- `locomo-strict`: the same without the generosity.
- `longmemeval`: yes or no, by kind of question (the authors' `evaluate_qa.py`).
- `beam-nuggets`: 0, 0.5 or 1 for each statement of a question's rubric (the authors' `unified_llm_judge_base_prompt`). Unlike the authors'
  program, it shows the judge the question, which their prompt refers to.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, final

from pydantic import field_validator

from longspan.simulator.base.files.labels import Row
from longspan.simulator.contract.queries import Answer, Query, fence, template

__all__ = [
    "ABSTENTION",
    "BEAM_NUGGETS",
    "LOCOMO",
    "LOCOMO_STRICT",
    "LONGMEMEVAL",
    "Correct",
    "Label",
    "Nugget",
    "Same",
    "locomo_query",
    "longmemeval_query",
    "nugget_query",
    "same_event_query",
]

HERE: Final = Path(__file__).parent / "templates"

ABSTENTION: Final = "abstention"
"""LongMemEval's rubric for questions that cannot be answered, whichever kind they are."""

KINDS: Final = frozenset({ABSTENTION, "temporal-reasoning", "knowledge-update", "single-session-preference"})
"""Kinds of questions that LongMemEval's rubric treats specially."""


@final
class Label(Answer):
    """Whether an answer is right, and why, as LoCoMo's judges say it."""

    why: str
    label: Literal["CORRECT", "WRONG"]

    @property
    def score(self) -> float:
        return float(self.label == "CORRECT")


@final
class Correct(Answer):
    """Whether a reply is right, and why."""

    why: str
    correct: bool

    @property
    def score(self) -> float:
        return float(self.correct)


@final
class Nugget(Answer):
    """How far a reply meets a requirement, and why."""

    why: str
    score: float

    @field_validator("score")
    @classmethod
    def _on_the_scale(cls, score: float) -> float:  # not in the schema, because some APIs reject numeric limits
        if score not in (0, 0.5, 1):
            raise ValueError(f"the score must be 0, 0.5 or 1, got {score:g}")
        return score


@final
class Same(Answer):
    """Whether two snippets describe the same event."""

    same: bool


def locomo_query(question: str, reference: str, response: str, *, strict: bool = False) -> Query[Label]:
    """Return the query that asks a judge whether an answer to one of LoCoMo's questions is right."""
    values = {"question": question, "reference": reference, "response": response}
    prompt = template(HERE, "locomo").render(values, strict=strict, fence=fence(*values.values()))
    return Query(prompt=prompt, answer=Label, version="locomo strict 1" if strict else "locomo 1")


def longmemeval_query(kind: str, question: str, reference: str, response: str) -> Query[Correct]:
    """Return the query that asks a judge whether a reply is right.

    `reference`: the right answer; for a preference, a description of a good reply; for an abstention, the reason why there is no answer.
    """
    values = {"question": question, "reference": reference, "response": response}
    kind = kind if kind in KINDS else ""
    prompt = template(HERE, "longmemeval").render(values, kind=kind, fence=fence(*values.values()))
    return Query(prompt=prompt, answer=Correct, version="longmemeval 1")


def nugget_query(question: str, nugget: str, response: str) -> Query[Nugget]:
    """Return the query that asks a judge how far a reply meets one statement of a question's rubric."""
    values = {"question": question, "nugget": nugget, "response": response}
    prompt = template(HERE, "nugget").render(values, fence=fence(*values.values()))
    return Query(prompt=prompt, answer=Nugget, version="beam nugget 1")


def same_event_query(first: str, second: str) -> Query[Same]:
    """Return the query that asks a judge whether two snippets describe the same event."""
    prompt = template(HERE, "same_event").render(first=first, second=second, fence=fence(first, second))
    return Query(prompt=prompt, answer=Same, version="beam event 1")


class _ScoredRubric:
    """A rubric for `longspan calibrate` whose answers have a score."""

    measured = "response"
    scale = (0.0, 1.0)
    step = 1.0

    def value(self, answer: Any) -> float:
        """Return the score of an answer."""
        return float(answer.score)


@final
class _Locomo(_ScoredRubric):
    columns = ("question", "reference", "response")

    def __init__(self, strict: bool) -> None:
        self._strict = strict

    def rows(self, paths: Sequence[Path]) -> list[Row]:
        """Return rows from files of labels or of released answers with verdicts. Raises InputError."""
        from longspan.scenarios.histories.labelled import locomo_rows  # only calibration reads labels

        return locomo_rows(paths, self.columns)

    def query(self, row: Row) -> Query[Any]:
        """Return the query that a run would use. Raises InputError if a value of the row is not text."""
        return locomo_query(*map(row.text, self.columns), strict=self._strict)


@final
class _LongMemEval(_ScoredRubric):
    columns = ("kind", "question", "reference", "response")

    def rows(self, paths: Sequence[Path]) -> list[Row]:
        """Return rows from files of labels or of released answers with verdicts. Raises InputError."""
        from longspan.scenarios.histories.labelled import longmemeval_rows

        return longmemeval_rows(paths, self.columns)

    def query(self, row: Row) -> Query[Any]:
        """Return the query that a run would use. Raises InputError if a value of the row is not text."""
        return longmemeval_query(*map(row.text, self.columns))


@final
class _Nuggets(_ScoredRubric):
    columns = ("question", "nugget", "response")
    step = 0.5

    def query(self, row: Row) -> Query[Any]:
        """Return the query that a run would use. Raises InputError if a value of the row is not text."""
        return nugget_query(*map(row.text, self.columns))


LOCOMO: Final = _Locomo(strict=False)
LOCOMO_STRICT: Final = _Locomo(strict=True)
LONGMEMEVAL: Final = _LongMemEval()
BEAM_NUGGETS: Final = _Nuggets()
