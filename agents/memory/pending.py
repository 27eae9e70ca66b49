"""Additions to a memory that await reporting: the memories written, their cost and their time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple, final

from pydantic import BaseModel, ConfigDict, Field

from longspan.agents.base import Usage
from longspan.agents.memory import trace
from longspan.agents.memory.memory import MemoryItem, Used
from longspan.agents.memory.turns import Turn
from longspan.agents.outside.counts import sum_of

__all__ = ["AdditionReport", "PendingAdditions"]

Count = Annotated[int, Field(ge=0, le=10**12)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


NOTABLE: Final = 0.001
"""Shorter times of settling, in seconds, are not reported."""


class AdditionReport(NamedTuple):
    """A report: trace fields, the models' usage and cost by role, and measured seconds."""

    trace: Mapping[str, Any]
    usage: Mapping[str, Usage]
    cost_usd: Mapping[str, float]
    measured: Mapping[str, float]


@final
class PendingAdditions(BaseModel):
    """Additions not yet reported.

    `written`: the memories made, None if unknown. `until`: the last turn that they cover. `turns` were added in `calls` calls of `add`.
    `forgotten`: memories removed on request. `usage`, `cost_usd`: the usage and cost of the memory's models, by role. `add_s`, `settle_s`:
    seconds.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    written: list[Annotated[trace.Written, Field(max_length=4)]] | None = None
    until: str | None = None
    turns: Count = 0
    calls: Count = 0
    forgotten: list[dict[str, Any]] = []
    usage: dict[str, tuple[Count, Count, Count]] = {}
    cost_usd: dict[str, Seconds] = {}
    add_s: Seconds = 0.0
    settle_s: Seconds = 0.0

    def add(
        self, turns: Sequence[Turn], made: Sequence[MemoryItem] | None, used: Used, seconds: float, *, unreported: bool = False
    ) -> None:
        """Record turns added in one call. `unreported`: the memory has not reported what it made of some earlier turns."""
        written = trace.trace_written(turns, made)
        if written is not None:
            self.written = [*(self.written or ()), *written]
        if self.written is not None and (written is None or (unreported and all(entry["turn"] for entry in self.written))):
            self.written.append(dict(trace.UNKNOWN))
        self.until = turns[-1].turn_id
        self.turns += len(turns)
        self.calls += 1
        self.add_s += seconds
        self.spend(used)

    def forget(self, gone: Sequence[MemoryItem] | None, used: Used) -> None:
        """Record the memories known to be removed on the user's request."""
        self.forgotten = [*self.forgotten, *map(trace.trace_item, gone or ())]
        self.spend(used)

    def spend(self, used: Used) -> None:
        """Record the usage of the memory's models."""
        for role, usage in used.usage.items():
            total = sum_of([Usage(*self.usage.get(role, (0, 0, 0))), usage])
            self.usage[role] = (total.input_tokens, total.cached_tokens, total.output_tokens)
        for role, cost in used.cost_usd.items():
            self.cost_usd[role] = self.cost_usd.get(role, 0.0) + cost

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to report."""
        return self == PendingAdditions()

    def make_report(self, searched: Used, search_s: float | None = None) -> AdditionReport:
        """Return the report of these additions, plus a search that took `search_s` seconds, if any."""
        written: dict[str, Any] = {} if self.written is None else {"written": self.written, "until": self.until}
        tokens = sum(read + wrote for read, _, wrote in self.usage.values())
        dollars = {"cost_usd": round(sum(self.cost_usd.values()), 6)} if self.cost_usd else {}
        added = {"added": {"turns": self.turns, "calls": self.calls, "tokens": tokens, **dollars}} if self.turns else {}
        adding = {role: Usage(*counts) for role, counts in self.usage.items()}
        roles = dict.fromkeys([*adding, *searched.usage])
        costs = dict.fromkeys([*self.cost_usd, *searched.cost_usd])
        settled = {"settle_s": round(self.settle_s, 6)} if self.settle_s >= NOTABLE else {}
        forgotten = {"forgotten": self.forgotten} if self.forgotten else {}
        return AdditionReport(
            written | added | forgotten,
            {role: sum_of(each[role] for each in (adding, searched.usage) if role in each) for role in roles},
            {role: self.cost_usd.get(role, 0.0) + searched.cost_usd.get(role, 0.0) for role in costs},
            {
                **({} if search_s is None else {"search_s": round(search_s, 6)}),
                **({"add_s": round(self.add_s, 6)} if self.turns else {}),
                **settled,
            },
        )
