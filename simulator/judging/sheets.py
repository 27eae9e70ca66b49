"""What people are asked about tests that they judge themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, final, runtime_checkable

from pydantic import BaseModel, ConfigDict

from longspan.simulator.record import Record

__all__ = ["Sheet", "Sheets"]


@final
class Sheet(BaseModel):
    """What a person is asked about one test: which of the `bullets` covers each of the `claims`, which have names."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str
    bullets: tuple[str, ...]
    claims: dict[str, str]


@runtime_checkable
class Sheets(Protocol):
    """A scenario whose tests people can judge. The items of its grades are named after claims, with numbers `coverage` and, where
    one covers it, `bullet`."""

    def sheet(self, facts: Mapping[str, Any], record: Record) -> Sheet:
        """The sheet of a test that was played."""
        ...
