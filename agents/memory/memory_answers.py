"""Validated answers of external memories to `add` and `search`. Their data is untrusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Final, final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from longspan.agents.base import Usage
from longspan.agents.memory.memory import MemoryItem, Used
from longspan.agents.models.core import clean_unicode
from longspan.agents.outside.counts import Counts, Dollars, sum_of
from longspan.agents.outside.protocol import AgentAnswer
from longspan.simulator.subject.ledger import Rates

__all__ = ["ROLE", "AddAnswer", "SearchAnswer", "UsageTracker"]

ROLE: Final = "memory"
"""The role of a memory's models in the usage."""

MAX_TEXT: Final = 1_000_000
"""The maximum characters of a memory."""


def _date(value: object) -> object:
    """Return a date and time without its time zone. Raises ValueError."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


@final
class _Item(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    text: Annotated[str, Field(max_length=MAX_TEXT)]
    turns: Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=10_000)] = []
    score: Annotated[float, Field(allow_inf_nan=False)] | None = None
    id: Annotated[str, Field(max_length=200)] | None = None
    at: Annotated[datetime | None, BeforeValidator(_date)] = None
    derived: bool = False

    @property
    def item(self) -> MemoryItem:
        known = None if self.id is None else clean_unicode(self.id)
        return MemoryItem(clean_unicode(self.text), tuple(map(clean_unicode, self.turns)), self.score, known, self.at, self.derived)


class _Items(AgentAnswer):
    """Memories, with the tokens and dollars spent on finding or making them. Tokens may have a vendor's names."""

    usage: Counts | None = None
    cost_usd: Dollars | None = None
    calls: int | None = Field(default=None, ge=0, le=1_000_000)


@final
class AddAnswer(_Items):
    """The answer to `add`: the memories made, null if unknown."""

    items: list[_Item] | None = None

    @property
    def found(self) -> Sequence[MemoryItem] | None:
        """The memories."""
        return None if self.items is None else [each.item for each in self.items]


@final
class SearchAnswer(_Items):
    """The answer to `search`: memories, best first."""

    items: list[_Item]

    @property
    def found(self) -> Sequence[MemoryItem]:
        """The memories."""
        return [each.item for each in self.items]


@final
class UsageTracker:
    """Usage of a memory's models since the last report."""

    def __init__(self, rates: Rates | None) -> None:
        self._rates = rates
        self._usages: list[Usage] = []
        self._costs: list[float | None] = []

    @property
    def models(self) -> Mapping[str, str | Rates] | None:
        """The models by role, if their price is given."""
        return None if self._rates is None else {ROLE: self._rates}

    def add(self, answer: AddAnswer | SearchAnswer) -> None:
        """Add an answer's usage."""
        if answer.usage is None and answer.cost_usd is None:
            return
        usage = answer.usage.usage if answer.usage is not None else None
        cost = answer.cost_usd
        if cost is None and usage is not None and answer.usage is not None:
            cost = self._rates.cost(usage) if self._rates is not None else answer.usage.cost_usd
        self._usages += [usage] if usage is not None else []
        self._costs.append(cost)

    def take(self) -> Used:
        """Return the usage so far and start over."""
        usage = {ROLE: sum_of(self._usages)} if self._usages else {}
        known = [cost for cost in self._costs if cost is not None]
        cost = {ROLE: sum(known)} if self._costs and len(known) == len(self._costs) else {}
        self._usages, self._costs = [], []
        return Used(usage, cost)
