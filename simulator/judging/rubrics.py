"""Rubrics: the judge's question about a labelled item, and the number that its answer stands for. Found by entry point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol, final

from longspan.simulator.judging.labels import Row
from longspan.simulator.plugins import load
from longspan.simulator.queries import Holds, Query, statement

__all__ = ["RUBRICS", "STATEMENT", "Rubric", "rubric"]

RUBRICS: Final = "longspan.rubrics"
"""The entry-point group of rubrics: name to `Rubric`."""


class Rubric(Protocol):
    """Turns the `columns` of a row into a query. `measured` is the column whose length may bias a judge, and `scale` the lowest and the
    highest value of an answer."""

    @property
    def columns(self) -> Sequence[str]: ...
    @property
    def measured(self) -> str: ...
    @property
    def scale(self) -> tuple[float, float]: ...

    def query(self, row: Row) -> Query[Any]:
        """Return the query for a row. Raises InputError if a value has the wrong type."""
        ...

    def value(self, answer: Any) -> float:
        """Return the value of an answer."""
        ...


@final
class _Statement:
    """Whether a statement is true of a text: the judge's question in the suite ltm."""

    columns = ("statement", "text")
    measured = "text"
    scale = (0.0, 1.0)

    def query(self, row: Row) -> Query[Any]:
        """Return the same query as in a run."""
        return statement(row.text("statement"), row.text("text"))

    def value(self, answer: Holds) -> float:
        """Return 1 if the statement is true, else 0."""
        return float(answer.holds)


STATEMENT: Final = _Statement()


def rubric(name: str) -> Rubric:
    """Return the rubric registered as `name`. Raises InputError if there is none."""
    loaded: Rubric = load(RUBRICS, "rubric", name)
    return loaded
