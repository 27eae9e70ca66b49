"""What a conversation costs: each reply priced when it is given, and a limit that is never passed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from math import fsum, inf
from typing import Any, Final, final

import trio
from pydantic import BaseModel, ConfigDict

from longspan.simulator.errors import InputError, StoppedError
from longspan.simulator.messages import Message, Reply, Usage

__all__ = ["Account", "Costs", "Ledger", "Spending", "check_priced", "known_cost", "models_of", "price", "tally", "total_cost", "used_by"]

Costs = dict[str, float | None]
"""Dollars by part (agent, embedder, judge). None: the tokens are known, their price is not."""


LOCAL: Final = "gguf"
"""The provider of models that run in this process: they cost nothing."""


@lru_cache(maxsize=1024)
def price(model: str, usage: Usage) -> float | None:
    """Dollars that `usage` of a model costs by the price list of genai-prices; None for a model that is not in it.

    `model` is written PROVIDER/MODEL, as in a spec: "openai/gpt-4o". A model whose provider is not listed is unknown,
    whatever its name: the same model costs something else elsewhere.
    """
    from genai_prices import Usage as Counted
    from genai_prices import calc_price

    provider, _, name = model.partition("/")
    if provider == LOCAL:
        return 0.0
    counted = Counted(input_tokens=usage.input_tokens, cache_read_tokens=usage.cached_tokens, output_tokens=usage.output_tokens)
    try:
        return float(calc_price(counted, name, provider_id=provider).total_price)
    except (LookupError, ValueError):
        return None


def models_of(agent: object) -> Mapping[str, str] | None:
    """The models that an agent pays for, by part, as PROVIDER/MODEL; empty where it costs nothing, None where nobody knows."""
    models: Mapping[str, str] | None = getattr(agent, "models", None)
    return models


def check_priced(agent: object, spec: str) -> None:
    """Whether a limit of dollars can be kept with the agent. Raises InputError where its price is not known."""
    models = models_of(agent)
    unknown = [model for model in (models or {}).values() if price(model, Usage(1, 0, 1)) is None]
    if models is None or unknown or (models and not callable(getattr(agent, "worst_case", None))):
        what = f"the price of {', '.join(unknown)} is unknown" if unknown else "nobody knows what it costs"
        raise InputError(f"--max-cost: agent {spec}: {what}; a limit cannot be kept, leave --max-cost out")


@final
@dataclass(slots=True)
class Account:
    """One call being paid for: `settle` says what it came to."""

    models: Mapping[str, str] | None
    costs: Costs | None = None

    def settle(self, used: Mapping[str, Usage]) -> Costs | None:
        """The dollars of what was used, by part; None where nothing is known to have been."""
        unknown = 0.0 if self.models == {} else None
        models = self.models or {}
        self.costs = {part: price(models[part], usage) if part in models else unknown for part, usage in used.items()}
        return self.costs or None


@dataclass(slots=True)
class Ledger:
    """Dollars spent over any number of conversations, under a `limit` (inf: none).

    What is not known to be priced is not counted: `check_priced` keeps such agents away from a limit.
    """

    limit: float = inf
    spent: float = 0.0
    _reserved: list[float] = field(default_factory=list)
    _settled: trio.Condition = field(default_factory=trio.Condition)

    @asynccontextmanager
    async def paying(self, models: Mapping[str, str] | None, worst: float = 0.0) -> AsyncIterator[Account]:
        """Reserve the dollars that a call may cost at worst, and give back what it did not.

        A call that fails, or is cancelled, counts as the worst: its provider may have charged for it. Raises
        StoppedError where the limit could be passed, once no other call is still to be settled.
        """
        async with self._settled:
            while fsum([self.spent, *self._reserved, worst]) > self.limit:
                if not self._reserved:
                    raise StoppedError(
                        f"the next turn could cost ${worst:.4f} and pass the limit of ${self.limit:.2f}, ${self.spent:.4f} being spent; "
                        "`longspan resume --max-cost` goes on with more"
                    )
                await self._settled.wait()
            self._reserved.append(worst)
        account = Account(models)
        try:
            yield account
        finally:
            self._reserved.remove(worst)
            costs = account.costs
            self.spent += worst if costs is None else known_cost(costs.values())
            with trio.CancelScope(shield=True):
                async with self._settled:
                    self._settled.notify_all()

    def worst(self, agent: Any, message: Message) -> float:
        """Dollars that a reply may cost at worst; 0 without a limit."""
        models = models_of(agent)
        if self.limit == inf or not models:
            return 0.0
        used: Mapping[str, Usage] = agent.worst_case(message)
        return known_cost(price(models[part], usage) for part, usage in used.items())


@final
class Spending(BaseModel):
    """What one part (agent, embedder, judge) used and cost. `cost_usd` None: some of it has no known price."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0

    def plus(self, usage: Mapping[str, int], cost: float | None) -> Spending:
        """With another reply's."""
        return Spending(
            input_tokens=self.input_tokens + usage.get("input_tokens", 0),
            cached_tokens=self.cached_tokens + usage.get("cached_tokens", 0),
            output_tokens=self.output_tokens + usage.get("output_tokens", 0),
            cost_usd=None if cost is None or self.cost_usd is None else round(self.cost_usd + cost, 9),
        )


def total_cost(costs: Iterable[float | None]) -> float | None:
    """Dollars of all costs together; None where one is unknown."""
    every = list(costs)
    return None if None in every else known_cost(every)


def known_cost(costs: Iterable[float | None]) -> float:
    """Dollars of those costs together that are known."""
    return fsum(cost for cost in costs if cost is not None)


def tally(entries: Iterable[tuple[str, Mapping[str, int], float | None]]) -> dict[str, Spending]:
    """The sums of (part, usage, dollars), by part."""
    sums: dict[str, Spending] = {}
    for part, usage, cost in entries:
        sums[part] = sums.get(part, Spending()).plus(usage, cost)
    return sums


def used_by(reply: Reply) -> dict[str, Usage]:
    """What a reply used, by part."""
    return ({"agent": reply.usage} if reply.usage else {}) | dict(reply.besides)
