"""The judges of ELITR-Bench: ten points with the number in a box, or five for judges of Prometheus' kind, doubled (appendix E).

The prompts are in our own words; the steps of the scale are the paper's.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, final

from pydantic import model_validator

from longspan.simulator.judging.labels import Row
from longspan.simulator.queries import Free, Query, fence, template

__all__ = ["FIVE", "TEN", "Points", "Rubric", "query"]

HERE: Final = Path(__file__).parent / "templates"

Rubric = Literal["ten", "five"]


class Points(Free):
    """An answer that ends in points. `points`: from 1 to 10. Raises ValueError where there are none, or none of the scale."""

    pattern: ClassVar[re.Pattern[str]]
    most: ClassVar[int]
    shape: ClassVar[str]

    @model_validator(mode="after")
    def _readable(self) -> Points:
        given = self._given()
        if given is None:
            raise ValueError(f"there are no points in it: {self.shape} was asked for, it ends {self.text[-60:]!r}")
        if not 1 <= given <= self.most:
            raise ValueError(f"points lie from 1 to {self.most}, got {given}")
        return self

    def _given(self) -> int | None:
        found = self.pattern.findall(self.text)
        return int(found[-1]) if found else None

    @property
    def points(self) -> int:
        return (self._given() or 0) * (10 // self.most)


@final
class Boxed(Points):
    """Ten points, in a box."""

    pattern = re.compile(r"\\boxed\s*\{\s*(?:\\text\s*\{\s*)?(-?\d{1,4})(?!\d|\.\d)")
    most = 10
    shape = r"\boxed{n}"


@final
class Result(Points):
    """Five points, behind a mark."""

    pattern = re.compile(r"\[RESULT\]\s*[:(]?\s*(-?\d{1,4})(?!\d|\.\d)", re.IGNORECASE)
    most = 5
    shape = "[RESULT] n"


ANSWERS: Final[dict[Rubric, type[Boxed] | type[Result]]] = {"ten": Boxed, "five": Result}


def query(rubric: Rubric, question: str, reference: str, response: str) -> Query[Points]:
    """What a judge is asked about a response. The transcript is not shown to it (section 4)."""
    mark = fence(question, reference, response)
    prompt = template(HERE, rubric).render(question=question, reference=reference, response=response, fence=mark)
    return Query[Points](prompt=prompt, answer=ANSWERS[rubric], version=f"elitr {rubric} 1")


@final
class _Calibrated:
    """A rubric as `longspan calibrate` uses it: a row of labels becomes a query, an answer becomes a number."""

    columns = ("question", "reference", "response")
    measured = "response"

    scale = (1.0, 10.0)
    """Five points are doubled: people's labels are of ten."""

    def __init__(self, rubric: Rubric) -> None:
        self._rubric = rubric

    def query(self, row: Row) -> Query[Any]:
        """What the judge is asked about a row. Raises InputError for a row that holds something else than text."""
        return query(self._rubric, row.text("question"), row.text("reference"), row.text("response"))

    def value(self, answer: Any) -> float:
        """The points in an answer."""
        return float(answer.points)


TEN: Final = _Calibrated("ten")
FIVE: Final = _Calibrated("five")
