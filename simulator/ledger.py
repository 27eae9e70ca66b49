"""The cost of conversations: each reply is priced as it arrives, and no turn begins that could exceed a limit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from math import fsum, inf
from typing import Any, Final, NamedTuple, final

import trio
from pydantic import BaseModel, ConfigDict

from longspan.simulator.amounts import NOTHING, UNLIMITED, Amount, total
from longspan.simulator.errors import AgentError, InputError, StoppedError
from longspan.simulator.messages import Message, Reply, Usage

__all__ = [
    "DROPPED",
    "MAX_DOLLARS",
    "MAX_TOKENS",
    "Account",
    "Costs",
    "Ledger",
    "Rates",
    "Spending",
    "amount_of",
    "check_priced",
    "known_cost",
    "models_of",
    "price",
    "stated_by",
    "tally",
    "total_cost",
    "used_by",
]

Costs = dict[str, float | None]
"""Dollars by part (agent, embedder, judge); None if the price is unknown."""


LOCAL: Final = "gguf"
"""The provider name of models that run in this process, which cost nothing."""

MAX_TOKENS: Final = 10**12
"""The most tokens that are believed of a reply."""

MAX_DOLLARS: Final = 1_000_000
"""The most dollars that are believed of a reply."""

DROPPED: Final = "dropped"
"""The part of replies that an agent gave since the last one and that were dropped, because it does not support `observe`."""


@final
class Rates(NamedTuple):
    """What a model costs by its user's word: dollars per million tokens of input, of input read from a cache, and of output."""

    input: float
    cached: float
    output: float

    def cost(self, usage: Usage) -> float:
        """Return the cost of `usage` in dollars."""
        fresh = usage.input_tokens - usage.cached_tokens
        return fsum((fresh * self.input, usage.cached_tokens * self.cached, usage.output_tokens * self.output)) / 1e6


@lru_cache(maxsize=1024)
def price(model: str | Rates, usage: Usage) -> float | None:
    """Return the cost of `usage` in dollars by rates or by the price list of genai-prices, or None for a model that is not listed.

    `model` is PROVIDER/MODEL, as in a spec: "openai/gpt-4o". With an unlisted provider the price is unknown whatever the model,
    because providers charge different prices for the same model.
    """
    from genai_prices import Usage as PricedUsage
    from genai_prices import calc_price

    if isinstance(model, Rates):
        return model.cost(usage)
    provider, _, name = model.partition("/")
    if provider == LOCAL:
        return 0.0
    priced_usage = PricedUsage(input_tokens=usage.input_tokens, cache_read_tokens=usage.cached_tokens, output_tokens=usage.output_tokens)
    try:
        return float(calc_price(priced_usage, name, provider_id=provider).total_price)
    except (LookupError, ValueError):
        return None


def models_of(agent: object) -> Mapping[str, str | Rates] | None:
    """Return the models that an agent pays for, by part, as PROVIDER/MODEL or their rates: empty if it is free, None if unknown."""
    models: Mapping[str, str | Rates] | None = getattr(agent, "models", None)
    return models


def check_priced(agent: object, spec: str) -> None:
    """Check that the cost of the agent's replies can be known. Raises InputError if a price is unknown, or its models are."""
    models = models_of(agent)
    unknown = [str(model) for model in (models or {}).values() if price(model, Usage(1, 0, 1)) is None]
    if models is None or unknown:
        problem = f"the price of {', '.join(unknown)} is unknown" if unknown else "its cost is unknown"
        remedy = "set price_in= and price_out=, or leave out --max-cost" if unknown else "leave out --max-cost"
        raise InputError(f"--max-cost: agent {spec}: {problem}, so that a limit cannot be enforced; {remedy}")


@final
@dataclass(slots=True)
class Account:
    """The bill of one call. `settle` sets its amount."""

    models: Mapping[str, str | Rates] | None
    amount: Amount | None = None

    def settle(self, used: Mapping[str, Usage], stated: Mapping[str, float] | None = None) -> Costs | None:
        """Record and return the cost of the usage in dollars by part, or None if no usage is known. What the agent has `stated` counts."""
        unknown = 0.0 if self.models == {} else None
        models = self.models or {}
        costs: Costs = {part: price(models[part], usage) if part in models else unknown for part, usage in used.items()}
        costs |= stated or {}
        self.amount = amount_of(used.values(), costs)
        return costs or None


@dataclass(slots=True)
class Ledger:
    """Dollars and tokens spent by any number of conversations, under a `limit`.

    Usage with an unknown price is not counted; `require_known` rejects such replies if there is a limit. `dearest` is the most that a
    reply has taken of an agent that cannot say beforehand what its replies will take: its next one is assumed to take as much. So is a
    night, by `dearest_night`, of any agent that costs money.
    """

    limit: Amount = UNLIMITED
    spent: Amount = NOTHING
    dearest: Amount = NOTHING
    dearest_night: Amount = NOTHING
    _reserved: list[Amount] = field(default_factory=list)
    _settled: trio.Condition = field(default_factory=trio.Condition)

    @asynccontextmanager
    async def paying(self, models: Mapping[str, str | Rates] | None, worst: Amount = NOTHING) -> AsyncIterator[Account]:
        """Reserve what a call may take at worst, and afterwards release what it did not take.

        A call that fails or is cancelled counts as the worst case, because its provider may have charged for it. Raises
        StoppedError if the limit could be exceeded and no other call is pending.
        """
        async with self._settled:
            while (problem := self._excess(total([self.spent, *self._reserved, worst]), worst)) is not None:
                if not self._reserved:
                    raise StoppedError(problem)
                await self._settled.wait()
            self._reserved.append(worst)
        account = Account(models)
        try:
            yield account
        finally:
            self._reserved.remove(worst)
            self.spent = total([self.spent, worst if account.amount is None else account.amount])
            with trio.CancelScope(shield=True):
                async with self._settled:
                    self._settled.notify_all()

    def _excess(self, reached: Amount, worst: Amount) -> str | None:
        """Return which limit would be exceeded, and what to do; None if none would be."""
        if reached.dollars > self.limit.dollars:
            return (
                f"the next turn could cost ${worst.dollars:.4f} and exceed the limit of ${self.limit.dollars:.2f}: "
                f"${self.spent.dollars:.4f} is spent; `longspan resume --max-cost` continues with another limit, resume alone with none"
            )
        if reached.tokens > self.limit.tokens:
            return (
                f"the next turn could take {worst.tokens:,.0f} tokens and exceed the limit of {self.limit.tokens:,.0f}: "
                f"{self.spent.tokens:,.0f} are used; `longspan resume --max-tokens-total` continues with another limit, "
                "resume alone with none"
            )
        return None

    def worst_night(self, agent: object) -> Amount:
        """Return what a night may take: as much as the dearest so far. Nothing without a limit."""
        return NOTHING if self.limit == UNLIMITED or models_of(agent) == {} else self.dearest_night

    def worst(self, agent: Any, message: Message) -> Amount:
        """Return what a reply may take at worst; of an agent that cannot say, as much as the most so far. Nothing without a limit."""
        models = models_of(agent)
        if self.limit == UNLIMITED:
            return NOTHING
        if callable(worst_case := getattr(agent, "worst_case", None)):
            used: Mapping[str, Usage] = worst_case(message)
            return amount_of(used.values(), {part: price(model, used[part]) for part, model in (models or {}).items() if part in used})
        if models == {}:
            return NOTHING
        owed: Amount = getattr(agent, "owed", NOTHING)
        return self.dearest.plus(owed)

    def require_priced(self, used: Mapping[str, Usage], costs: Costs | None) -> None:
        """Check that a night tells the cost of what it used, and remember the dearest. Raises AgentError if a limit cannot be enforced."""
        unknown = [part for part, cost in (costs or {}).items() if cost is None]
        if self.limit.dollars < inf and unknown:
            raise AgentError(
                f"consolidate does not tell the cost of its {', '.join(unknown)}, so that --max-cost cannot be enforced; give cost_usd, or "
                "usage with a priced model, set price_in= and price_out=, or leave out --max-cost"
            )
        self.dearest_night = self.dearest_night.most(amount_of(used.values(), costs))

    def require_known(self, agent: object, used: Mapping[str, Usage], costs: Costs | None) -> None:
        """Check that a reply tells what is limited, and remember the dearest. Raises AgentError if a limit cannot be enforced."""
        if self.limit == UNLIMITED or models_of(agent) == {} or callable(getattr(agent, "worst_case", None)):
            return
        unknown = [part for part, cost in (costs or {}).items() if cost is None]
        if self.limit.dollars < inf and (costs is None or unknown):
            of = f" of its {', '.join(unknown)}" if unknown and unknown != ["agent"] else ""
            raise AgentError(
                f"the reply does not tell its cost{of}, so that --max-cost cannot be enforced; give cost_usd, or usage with a priced "
                "model, set price_in= and price_out=, or leave out --max-cost"
            )
        if self.limit.tokens < inf and not used:
            raise AgentError("the reply has no usage, so that --max-tokens-total cannot be enforced; give usage, or leave it out")
        own = {part: usage for part, usage in used.items() if part != DROPPED}
        self.dearest = self.dearest.most(amount_of(own.values(), {part: cost for part, cost in (costs or {}).items() if part != DROPPED}))


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


def amount_of(used: Iterable[Usage], costs: Mapping[str, float | None] | None) -> Amount:
    """Return the amount of usage and its costs by part, as far as they are known."""
    return Amount(known_cost((costs or {}).values()), sum(usage.input_tokens + usage.output_tokens for usage in used))


def used_by(reply: Reply) -> dict[str, Usage]:
    """Return the usage of a reply by part."""
    return ({"agent": reply.usage} if reply.usage else {}) | dict(reply.besides)


def stated_by(reply: Reply) -> dict[str, float]:
    """Return the dollars that an agent says its reply cost, by part. A single figure is for all parts together."""
    if reply.cost_usd is None:
        return {}
    if isinstance(reply.cost_usd, Mapping):
        return {part: float(cost) for part, cost in reply.cost_usd.items()}
    return {"agent": float(reply.cost_usd)} | dict.fromkeys(reply.besides, 0.0)
