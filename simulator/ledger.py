"""The cost of conversations: each reply is priced as it arrives, and a limit is never exceeded."""

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
"""Dollars by part (agent, embedder, judge); None if the price is unknown."""


LOCAL: Final = "gguf"
"""The provider name of models that run in this process, which cost nothing."""


@lru_cache(maxsize=1024)
def price(model: str, usage: Usage) -> float | None:
    """Return the cost of `usage` in dollars by the price list of genai-prices, or None for a model that is not listed.

    `model` is PROVIDER/MODEL, as in a spec: "openai/gpt-4o". With an unlisted provider the price is unknown whatever the model,
    because providers charge different prices for the same model.
    """
    from genai_prices import Usage as PricedUsage
    from genai_prices import calc_price

    provider, _, name = model.partition("/")
    if provider == LOCAL:
        return 0.0
    priced_usage = PricedUsage(input_tokens=usage.input_tokens, cache_read_tokens=usage.cached_tokens, output_tokens=usage.output_tokens)
    try:
        return float(calc_price(priced_usage, name, provider_id=provider).total_price)
    except (LookupError, ValueError):
        return None


def models_of(agent: object) -> Mapping[str, str] | None:
    """Return the models that an agent pays for, by part, as PROVIDER/MODEL: empty if it is free, None if unknown."""
    models: Mapping[str, str] | None = getattr(agent, "models", None)
    return models


def check_priced(agent: object, spec: str) -> None:
    """Check that a cost limit can be enforced for the agent. Raises InputError if its price is unknown."""
    models = models_of(agent)
    unknown = [model for model in (models or {}).values() if price(model, Usage(1, 0, 1)) is None]
    if models is None or unknown or (models and not callable(getattr(agent, "worst_case", None))):
        problem = f"the price of {', '.join(unknown)} is unknown" if unknown else "its cost is unknown"
        raise InputError(f"--max-cost: agent {spec}: {problem}, so that a limit cannot be enforced; leave out --max-cost")


@final
@dataclass(slots=True)
class Account:
    """The bill of one call. `settle` sets its costs."""

    models: Mapping[str, str] | None
    costs: Costs | None = None

    def settle(self, used: Mapping[str, Usage]) -> Costs | None:
        """Record and return the cost of the usage in dollars by part, or None if no usage is known."""
        unknown = 0.0 if self.models == {} else None
        models = self.models or {}
        self.costs = {part: price(models[part], usage) if part in models else unknown for part, usage in used.items()}
        return self.costs or None


@dataclass(slots=True)
class Ledger:
    """Dollars spent by any number of conversations, under a `limit` (inf for none).

    Usage with an unknown price is not counted; `check_priced` rejects such agents if there is a limit.
    """

    limit: float = inf
    spent: float = 0.0
    _reserved: list[float] = field(default_factory=list)
    _settled: trio.Condition = field(default_factory=trio.Condition)

    @asynccontextmanager
    async def paying(self, models: Mapping[str, str] | None, worst: float = 0.0) -> AsyncIterator[Account]:
        """Reserve the dollars that a call may cost at worst, and afterwards release what it did not cost.

        A call that fails or is cancelled counts as the worst case, because its provider may have charged for it. Raises
        StoppedError if the limit could be exceeded and no other call is pending.
        """
        async with self._settled:
            while fsum([self.spent, *self._reserved, worst]) > self.limit:
                if not self._reserved:
                    raise StoppedError(
                        f"the next turn could cost ${worst:.4f} and exceed the limit of ${self.limit:.2f}: ${self.spent:.4f} is spent; "
                        "`longspan resume --max-cost` continues with a higher limit"
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
        """Return the dollars that a reply may cost at worst, or 0 without a limit."""
        models = models_of(agent)
        if self.limit == inf or not models:
            return 0.0
        used: Mapping[str, Usage] = agent.worst_case(message)
        return known_cost(price(models[part], usage) for part, usage in used.items())


@final
class Spending(BaseModel):
    """The usage and cost of one part (agent, embedder, judge). `cost_usd` is None if some of it has no known price."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0

    def plus(self, usage: Mapping[str, int], cost: float | None) -> Spending:
        """Return the sum with another reply's usage and cost."""
        return Spending(
            input_tokens=self.input_tokens + usage.get("input_tokens", 0),
            cached_tokens=self.cached_tokens + usage.get("cached_tokens", 0),
            output_tokens=self.output_tokens + usage.get("output_tokens", 0),
            cost_usd=None if cost is None or self.cost_usd is None else round(self.cost_usd + cost, 9),
        )


def total_cost(costs: Iterable[float | None]) -> float | None:
    """Return the sum of the costs in dollars, or None if one is unknown."""
    costs = list(costs)
    return None if None in costs else known_cost(costs)


def known_cost(costs: Iterable[float | None]) -> float:
    """Return the sum of the known costs in dollars."""
    return fsum(cost for cost in costs if cost is not None)


def tally(entries: Iterable[tuple[str, Mapping[str, int], float | None]]) -> dict[str, Spending]:
    """Sum up entries of (part, usage, dollars) by part."""
    sums: dict[str, Spending] = {}
    for part, usage, cost in entries:
        sums[part] = sums.get(part, Spending()).plus(usage, cost)
    return sums


def used_by(reply: Reply) -> dict[str, Usage]:
    """Return the usage of a reply by part."""
    return ({"agent": reply.usage} if reply.usage else {}) | dict(reply.besides)
