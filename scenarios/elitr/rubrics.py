"""The rubrics of ELITR-Bench's judges (appendix E): ten points, boxed, or for judges like Prometheus five points, doubled.

The prompts are in longspan's own words; the levels of the scale are the paper's.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, final

from pydantic import model_validator

from longspan.scenarios.shared.own_prompts import fill_prompt
from longspan.simulator.base.files.labels import Row
from longspan.simulator.contract.queries import Free, Query, fence, template

__all__ = ["FIVE", "TEN", "Points", "Rubric", "points_query"]

HERE: Final = Path(__file__).parent / "templates"

Rubric = Literal["ten", "five"]


class Points(Free):
    """An answer with points, the first in it that stand in their mark. `points`: from 1 to 10.

    The first, as in the paper's program: later ones may belong to an answer that would deserve more. Raises ValueError if they are missing
    or not on the scale.
    """

    pattern: ClassVar[re.Pattern[str]]
    scale: ClassVar[int]
    shape: ClassVar[str]

    @model_validator(mode="after")
    def _readable(self) -> Points:
        given = self._read_points()
        if given is None:
            raise ValueError(f"the answer has no points: expected {self.shape}, it ends {self.text[-60:]!r}")
        if not 1 <= given <= self.scale:
            raise ValueError(f"points must be from 1 to {self.scale}, got {given}")
        return self

    def _read_points(self) -> int | None:
        found = self.pattern.search(self.text)
        return int(found[1]) if found else None

    @property
    def points(self) -> int:
        return (self._read_points() or 0) * (10 // self.scale)


@final
class Boxed(Points):
    """Points out of ten, in a box."""

    pattern = re.compile(r"\\boxed\s*+\{\s*+(?:\\text\s*+\{\s*+)?(-?\d{1,4})(?!\d|\.\d)")
    scale = 10
    shape = r"\boxed{n}"


@final
class Result(Points):
    """Points out of five, after a mark."""

    pattern = re.compile(r"\[RESULT\]\s*+(?:[:(]\s*+)?(-?\d{1,4})(?!\d|\.\d)", re.IGNORECASE)
    scale = 5
    shape = "[RESULT] n"


ANSWERS: Final[dict[Rubric, type[Boxed] | type[Result]]] = {"ten": Boxed, "five": Result}


def points_query(rubric: Rubric, question: str, reference: str, response: str, own: str | None = None) -> Query[Points]:
    """Return the query to a judge about a response; `own` is the user's prompt. The judge does not see the transcript (section 4)."""
    values = {"question": question, "reference": reference, "response": response}
    if own is not None:
        return Query[Points](prompt=fill_prompt(own, **values), answer=ANSWERS[rubric], version=f"elitr {rubric} own")
    prompt = template(HERE, rubric).render(values, fence=fence(*values.values()))
    return Query[Points](prompt=prompt, answer=ANSWERS[rubric], version=f"elitr {rubric} 1")


@final
class _CalibratedRubric:
    """A rubric for `longspan calibrate`: a row of labels becomes a query, an answer becomes a number."""

    columns = ("question", "reference", "response")
    measured = "response"

    step = 1.0
    scale = (1.0, 10.0)
    """Points out of five are doubled, because people's labels are out of ten."""

    def __init__(self, rubric: Rubric) -> None:
        self._rubric = rubric

    def query(self, row: Row) -> Query[Any]:
        """Return the query to the judge about a row. Raises InputError if a value of the row is not text."""
        return points_query(self._rubric, row.text("question"), row.text("reference"), row.text("response"))

    def value(self, answer: Any) -> float:
        """Return the points in an answer."""
        return float(answer.points)


TEN: Final = _CalibratedRubric("ten")
FIVE: Final = _CalibratedRubric("five")
