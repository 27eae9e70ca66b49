"""Rubrics: what a judge is asked about an item that people have labelled, and what number its answer is. Found by entry point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol, final

from longspan.simulator.judging.labels import Row
from longspan.simulator.plugins import load
from longspan.simulator.queries import Holds, Query, statement

__all__ = ["RUBRICS", "STATEMENT", "Rubric", "rubric"]

RUBRICS: Final = "longspan.rubrics"
"""The entry-point group of rubrics: a name, and a `Rubric`."""


class Rubric(Protocol):
    """`columns` of a row become a query; `measured` is the one whose length may bias a judge. `scale`: the least and the most that an
    answer is worth."""

    @property
    def columns(self) -> Sequence[str]: ...
    @property
    def measured(self) -> str: ...
    @property
    def scale(self) -> tuple[float, float]: ...

    def query(self, row: Row) -> Query[Any]:
        """What the judge is asked about a row. Raises InputError for a row that holds something else than the rubric takes."""
        ...

    def value(self, answer: Any) -> float:
        """The number in an answer to such a query."""
        ...


@final
class _Statement:
    """Whether a statement holds of a text: what a judge of the suite ltm is asked."""

    columns = ("statement", "text")
    measured = "text"
    scale = (0.0, 1.0)

    def query(self, row: Row) -> Query[Any]:
        """The same query as in a run."""
        return statement(row.text("statement"), row.text("text"))

    def value(self, answer: Holds) -> float:
        """1 where it holds, else 0."""
        return float(answer.holds)


STATEMENT: Final = _Statement()


def rubric(name: str) -> Rubric:
    """The rubric registered as `name`. Raises InputError."""
    found: Rubric = load(RUBRICS, "rubric", name)
    return found
