"""Sheets: the questions for people who judge tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, final, runtime_checkable

from pydantic import BaseModel, ConfigDict

from longspan.simulator.contract.graded_record import Record

__all__ = ["Sheet", "Sheets"]


@final
class Sheet(BaseModel):
    """The questions about one test: which of the `bullets` covers each of the named `claims`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str
    bullets: tuple[str, ...]
    claims: dict[str, str]


@runtime_checkable
class Sheets(Protocol):
    """A scenario with tests that people can judge.

    The items of its grades are named after claims. They have the number `coverage` and, if a bullet covers the claim, the number `bullet`.
    """

    def sheet(self, facts: Mapping[str, Any], record: Record) -> Sheet:
        """Return the sheet of a played test."""
        ...
