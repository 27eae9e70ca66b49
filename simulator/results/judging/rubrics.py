"""Rubrics: the judge's question about a labelled item, and the numeric value of its answer. They are found by entry point."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol, final, runtime_checkable

from longspan.simulator.base.files.labels import Row
from longspan.simulator.contract.plugins import load_plugin
from longspan.simulator.contract.queries import Holds, Query, statement

__all__ = ["RUBRICS", "STATEMENT", "ReadsRows", "Rubric", "find_rubric"]

RUBRICS: Final = "longspan.rubrics"
"""The entry-point group of rubrics. It maps a name to a `Rubric`."""


class Rubric(Protocol):
    """Turns the `columns` of a row into a query.

    `measured` is the column whose length may bias a judge. `scale` has the lowest and the highest value of an answer, and `step` the
    distance between two values.
    """

    @property
    def columns(self) -> Sequence[str]: ...
    @property
    def measured(self) -> str: ...
    @property
    def scale(self) -> tuple[float, float]: ...
    @property
    def step(self) -> float: ...

    def query(self, row: Row) -> Query[Any]:
        """Return the query for a row. Raises InputError if a value has the wrong type."""
        ...

    def value(self, answer: Any) -> float:
        """Return the value of an answer."""
        ...


@runtime_checkable
class ReadsRows(Protocol):
    """A rubric that also reads labels in other forms than rows with its columns, such as answers released together with verdicts."""

    def rows(self, paths: Sequence[Path]) -> list[Row]:
        """Return the rows in files, with the rubric's columns, `label` and possibly `annotator`. Raises InputError."""
        ...


@final
class _Statement:
    """Whether a statement is true according to the text: the judge's question in the suite ltm."""

    columns = ("statement", "text")
    measured = "text"
    scale = (0.0, 1.0)
    step = 1.0

    def query(self, row: Row) -> Query[Any]:
        """Return the same query as in a run."""
        return statement(row.text("statement"), row.text("text"))

    def value(self, answer: Holds) -> float:
        """Return 1 if the statement is true, else 0."""
        return float(answer.holds)


STATEMENT: Final = _Statement()


def find_rubric(name: str) -> Rubric:
    """Return the rubric registered as `name`. Raises InputError for an unknown name."""
    loaded: Rubric = load_plugin(RUBRICS, "rubric", name)
    return loaded
