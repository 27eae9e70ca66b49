"""The cost of conversations: prices each reply when it arrives, and refuses a turn that could exceed a limit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from math import fsum, inf
from threading import Lock
from typing import Any, ClassVar, Final, NamedTuple, final

import trio
from pydantic import BaseModel, ConfigDict

from longspan.simulator.base.errors import AgentError, InputError, StoppedError
from longspan.simulator.contract.messages import Message, Reply, Usage
from longspan.simulator.subject.spending_limit import NOTHING, UNLIMITED, Amount, sum_amounts
from longspan.simulator.subject.spending_record import Expense

__all__ = [
    "DROPPED",
    "MAX_DOLLARS",
    "MAX_TOKENS",
    "Account",
    "Costs",
    "Ledger",
    "Rates",
    "Spending",
    "UnpricedCall",
    "Worst",
    "amount_of",
    "check_priced",
    "expense_of",
    "models_of",
    "price_usage",
    "reported_costs",
    "sum_known_costs",
    "tally_spending",
    "total_cost",
    "usage_by_part",
]

Costs = dict[str, float | None]
"""Dollars by part (agent, embedder, judge), or None for a part whose price is unknown."""


LOCAL: Final = "gguf"
"""The provider name of models that run in this process. They cost nothing."""

MAX_TOKENS: Final = 10**12
"""The largest plausible number of tokens for a reply."""

MAX_DOLLARS: Final = 1_000_000
"""The largest plausible cost of a reply in dollars."""

DROPPED: Final = "dropped"
"""The part that dropped replies are billed to. An agent without `observe` answers turns that it should only read; those answers are
dropped."""


@final
class Rates(NamedTuple):
    """A model's prices as stated by the user, in dollars per million tokens: input, input read from a cache, and output."""

    input: float
    cached: float
    output: float

    def cost(self, usage: Usage) -> float:
        """Return the cost of `usage` in dollars."""
        fresh = usage.input_tokens - usage.cached_tokens
        return fsum((fresh * self.input, usage.cached_tokens * self.cached, usage.output_tokens * self.output)) / 1e6


@lru_cache(maxsize=1024)
def price_usage(model: str | Rates, usage: Usage) -> float | None:
    """Return the cost of `usage` in dollars, from rates or from the price list of genai-prices, or None if the model is not listed.

    `model` is PROVIDER/MODEL, as in a spec: "openai/gpt-4o". A model of an unlisted provider has no price, even if another provider sells
    the same model: prices differ.
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


def expense_of(model: str | Rates, usage: Usage) -> Expense:
    """Return `usage` with its cost, from rates or from the price list."""
    return Expense(usage, price_usage(model, usage))


def models_of(agent: object) -> Mapping[str, str | Rates] | None:
    """Return the models that an agent pays for, by part: empty if it is free, None if unknown. A model is PROVIDER/MODEL or rates."""
    models: Mapping[str, str | Rates] | None = getattr(agent, "models", None)
    return models


def check_priced(agent: object, spec: str) -> None:
    """Check that the cost of the agent's replies can be computed. Raises InputError if its models or one of their prices is unknown."""
    models = models_of(agent)
    unknown = dict.fromkeys(str(model) for model in (models or {}).values() if price_usage(model, Usage(1, 0, 1)) is None)
    if models is None or unknown:
        problem = f"the price of {', '.join(unknown)} is unknown" if unknown else "its cost is unknown"
        remedy = "set price_in= and price_out=, or leave out --max-cost" if unknown else "leave out --max-cost"
        raise InputError(f"--max-cost: agent {spec}: {problem}, so that a limit cannot be enforced; {remedy}")


@final
@dataclass(frozen=True, slots=True)
class UnpricedCall:
    """A call whose worst-case cost the agent cannot state in advance.

    `payer` names the agent and the kind of call. `depth` is the length of the conversation so far in characters; replies cost more as it
    grows. `seldom`: most such calls cost nothing, as in a memory that adds turns in batches.
    """

    payer: str
    depth: int
    seldom: bool = False


Worst = Amount | UnpricedCall
"""The worst-case cost of a call, or the call itself if that is unknown."""


@final
@dataclass(slots=True)
class _HighestCosts:
    """The highest cost of a payer's calls so far, in conversations of up to `depth` characters.

    `alone`: a call in a longer conversation is pending. `problem`: why no more calls are paid for.
    """

    dearest: Amount
    depth: int = -1
    alone: bool = False
    problem: str | None = None

    def is_new(self, call: UnpricedCall) -> bool:
        """Return whether the cost of a similar call is still unknown."""
        return call.depth > self.depth or (call.seldom and self.dearest == NOTHING)


@final
@dataclass(slots=True)
class Account:
    """The bill of one call to an agent. `reserved` is the amount set aside for it, and `known` says that this is its worst case.

    `is_metered` says of a model (its name or rates) whether longspan calls it itself. `metered` is the cost of such calls so far, and
    `pending` lists the worst cases of unfinished ones.
    `expenses` is the agent's own report, None until it arrives. `failed`: the call failed, so the agent may have paid for more than it
    reports. `partial_models`: the agent may also pay for models that are not in `models`.

    `settle` records the report.
    """

    models: Mapping[str, str | Rates] | None
    reserved: Amount = NOTHING
    known: bool = True
    is_metered: Callable[[str | Rates], bool] = lambda rates: False
    metered: Amount = NOTHING
    pending: list[Amount] = field(default_factory=list)
    closed: bool = False
    expenses: Sequence[Expense] | None = None
    failed: bool = False
    partial_models: bool = False
    amount: Amount | None = None

    @property
    def is_paid(self) -> bool:
        """Whether the call can cost anything."""
        return self.models != {}

    @property
    def reports(self) -> bool:
        """Whether some cost of the call is known only from the agent's report."""
        return self.models is None or self.partial_models or not all(map(self.is_metered, self.models.values()))

    def settle(self, used: Mapping[str, Usage], stated: Mapping[str, float] | None = None, *, failed: bool = False) -> Costs | None:
        """Record the agent's report, and return its cost in dollars by part, or None without usage.

        Costs that the agent has `stated` take precedence over prices. `failed`: the call failed, and this is all that is known.
        """
        self.failed = failed
        unknown = 0.0 if self.models == {} else None
        models = self.models or {}
        costs: Costs = {part: price_usage(models[part], usage) if part in models else unknown for part, usage in used.items()}
        costs |= stated or {}
        reported = [part for part in costs if part not in models or not self.is_metered(models[part])]
        self.expenses = [Expense(used.get(part, Usage()), costs[part], part) for part in reported]
        self.amount = sum_amounts(expense.amount for expense in self.expenses)
        return costs or None

    def total(self) -> Amount:
        """Return the total cost of the call, or at least `reserved` if the agent failed to report it."""
        known = self.metered.plus(self.amount or NOTHING)
        return known.most(self.reserved) if self.reports and (self.failed or self.amount is None) else known


@dataclass(slots=True)
class Ledger:
    """Dollars and tokens spent by any number of conversations, under a `limit`.

    A call's worst case is reserved before the call. If the payer cannot state it, the ledger reserves the highest cost of that payer's
    calls so far, and at least `dearest`. Until such a payer has finished a call at this conversation length, its calls run one at a time:
    so together they exceed the limit by at most one call. Usage without a known price is not counted. Under a limit, `require_known` and
    `require_told` reject it.
    """

    waits: ClassVar[bool] = False
    """Whether `draw` may block on another process."""

    limit: Amount = UNLIMITED
    spent: Amount = NOTHING
    dearest: Amount = NOTHING
    _reserved: list[Amount] = field(default_factory=list)
    _seen: dict[str, _HighestCosts] = field(default_factory=dict)
    _settled: trio.Condition = field(default_factory=trio.Condition)
    _lock: Lock = field(default_factory=Lock)

    @asynccontextmanager
    async def open_account(self, models: Mapping[str, str | Rates] | None, worst: Worst = NOTHING) -> AsyncIterator[Account]:
        """Reserve the worst case of a call, and release the unused part when the context ends.

        If a call fails or is cancelled without a report of its cost, the worst case is counted, because the provider may have charged for
        it. Waits while pending calls might free enough of the limit. Raises StoppedError if none is pending and the limit could be
        exceeded.
        """
        call = worst if isinstance(worst, UnpricedCall) else None
        seen = self._record_of(call)
        async with self._settled:
            while True:
                if seen.problem is not None:
                    raise AgentError(seen.problem)
                reserved = seen.dearest if isinstance(worst, UnpricedCall) else worst
                alone = call is not None and seen.is_new(call)
                with self._lock:
                    problem = self._excess(reserved, reserved)
                    if problem is None and not (alone and seen.alone):
                        self._reserved.append(reserved)
                        break
                    pending = bool(self._reserved)
                if not pending:
                    raise StoppedError(problem)
                await self._settled.wait()
            seen.alone |= alone
        account, done = Account(models, reserved, known=call is None), False
        try:
            yield account
            done = True
        finally:
            with self._lock:
                account.closed = True
                self._reserved.remove(account.reserved)
                self._reserved += account.pending
                self.spent = self.spent.plus(account.total())
            seen.alone &= not alone
            if call is not None and (account.amount is not None if done else account.metered != NOTHING):
                seen.dearest = seen.dearest.most(account.total())
                seen.depth = max(seen.depth, call.depth) if done else seen.depth
            with trio.CancelScope(shield=True):
                async with self._settled:
                    self._settled.notify_all()

    def draw(self, account: Account | None, worst: Amount) -> None:
        """Check that a call to a provider with the worst case `worst` may start. Never blocks on other calls. Thread-safe.

        The call draws on the reserve of its `account`, which grows if it is too small. An account whose worst case was known does not grow
        until it is used up. Raises StoppedError if the limit could be exceeded. `meter` must be called once afterwards.
        """
        if self.limit != UNLIMITED:
            more = worst
            if account is not None:
                more = sum_amounts([account.metered, *account.pending, worst]).beyond(account.reserved)
                if account.known and not account.reserved.is_used_up_by(account.metered):
                    more = NOTHING
            if (problem := self.grow(account, more)) is not None:
                raise StoppedError(problem)
        with self._lock:
            (self._reserved if account is None or account.closed else account.pending).append(worst)

    def grow(self, account: Account | None, more: Amount) -> str | None:
        """Reserve more for an account. Return the problem if the limit does not allow it. Without an account, only check."""
        with self._lock:
            if account is not None and account.closed:  # a background call that outlived its account
                account = None
            whole = more if account is None else account.reserved.plus(more)
            problem = self._excess(more, whole) if more != NOTHING else None
            if problem is None and account is not None:
                self._reserved.remove(account.reserved)
                account.reserved = account.reserved.plus(more)
                self._reserved.append(account.reserved)
        return problem

    def count(self, amount: Amount) -> None:
        """Count an expense that has no account."""
        with self._lock:
            self.spent = self.spent.plus(amount)

    def meter(self, account: Account | None, worst: Amount, amount: Amount) -> bool:
        """Count the cost of a call to a provider. Return whether it had no open account. Thread-safe."""
        with self._lock:
            if account is not None and not account.closed:
                account.pending.remove(worst)
                account.metered = account.metered.plus(amount)
                return False
            self._reserved.remove(worst)
            self.spent = self.spent.plus(amount)
            return True

    def _record_of(self, call: UnpricedCall | None) -> _HighestCosts:
        """Return the record of similar calls, or an empty one if the worst case of the call is known."""
        return self._seen.setdefault(call.payer, _HighestCosts(self.dearest)) if call is not None else _HighestCosts(NOTHING)

    def _refuse(self, call: Worst, problem: str) -> AgentError:
        """Refuse all further calls of this kind, and return the error to raise."""
        if isinstance(call, UnpricedCall):
            self._record_of(call).problem = problem
        return AgentError(problem)

    def _excess(self, more: Amount, worst: Amount) -> str | None:
        """Return a message with a remedy if reserving `more` could exceed a limit, or None. `worst` is the turn's whole worst case."""
        reached = sum_amounts([self.spent, *self._reserved, more])
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

    def worst(self, agent: Any, message: Message, payer: str = "", depth: int = 0) -> Worst:
        """Return the worst case of a reply. Without a limit, return NOTHING."""
        if self.limit == UNLIMITED:
            return NOTHING
        known = _worst_case(agent, message)
        return known if known is not None else NOTHING if models_of(agent) == {} else UnpricedCall(payer, depth)

    def worst_of(self, agent: Any, work: str, payer: str, depth: int, message: Message | None = None, *, seldom: bool = False) -> Worst:
        """Return the worst case of `work` other than a reply, for `message` if there is one. Without a limit, return NOTHING."""
        if self.limit == UNLIMITED or models_of(agent) == {}:
            return NOTHING
        known = _worst_case(agent, message, replies=False) if message is not None else None
        return known if known is not None else UnpricedCall(f"{payer} {work}", depth, seldom)

    def require_told(self, call: Worst, costs: Costs | None, work: str) -> None:
        """Check that every cost of a call for `work` is known. Raises AgentError if a limit cannot be enforced."""
        unknown = [part for part, cost in (costs or {}).items() if cost is None]
        if self.limit.dollars < inf and unknown:
            raise self._refuse(
                call,
                f"{work} does not state the cost of its {', '.join(unknown)}, so that --max-cost cannot be enforced; give cost_usd, or "
                "usage with a priced model, set price_in= and price_out=, or leave out --max-cost",
            )

    def require_known(self, account: Account, call: Worst, used: Mapping[str, Usage], costs: Costs | None) -> None:
        """Check that a reply states every limited quantity. Raises AgentError if a limit cannot be enforced."""
        if not isinstance(call, UnpricedCall) or not account.reports:
            return  # every model call is metered, so an agent that reports nothing has used nothing
        unknown = [part for part, cost in (costs or {}).items() if cost is None]
        if self.limit.dollars < inf and (costs is None or unknown):
            of = f" of its {', '.join(unknown)}" if unknown and unknown != ["agent"] else ""
            raise self._refuse(
                call,
                f"the reply does not state its cost{of}, so that --max-cost cannot be enforced; give cost_usd, or usage with a priced "
                "model, set price_in= and price_out=, or leave out --max-cost",
            )
        if self.limit.tokens < inf and not used:
            raise self._refuse(call, "the reply has no usage, so that --max-tokens-total cannot be enforced; give usage, or leave it out")


def _worst_case(agent: Any, message: Message, *, replies: bool = True) -> Amount | None:
    """Return the worst case of a message, or None if the agent cannot state it. Without `replies`, the agent only reads the turn."""
    worst_case = getattr(agent, "worst_case", None)
    if not callable(worst_case):
        return None
    models = models_of(agent) or {}
    used: dict[str, Usage] = {part: usage for part, usage in worst_case(message).items() if replies or part != "agent"}
    return amount_of(used.values(), {part: price_usage(models[part], usage) for part, usage in used.items() if part in models})


@final
class Spending(BaseModel):
    """The usage and cost of one part (agent, embedder, judge). `cost_usd` is None if some of its cost is unknown."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0

    def plus(self, usage: Mapping[str, int], cost: float | None) -> Spending:
        """Return the sum with the usage and cost of another reply."""
        return Spending(
            input_tokens=self.input_tokens + usage.get("input_tokens", 0),
            cached_tokens=self.cached_tokens + usage.get("cached_tokens", 0),
            output_tokens=self.output_tokens + usage.get("output_tokens", 0),
            cost_usd=None if cost is None or self.cost_usd is None else round(self.cost_usd + cost, 9),
        )


def total_cost(costs: Iterable[float | None]) -> float | None:
    """Return the sum of costs in dollars, or None if one of them is unknown."""
    costs = list(costs)
    return None if None in costs else sum_known_costs(costs)


def sum_known_costs(costs: Iterable[float | None]) -> float:
    """Return the sum of the known costs in dollars."""
    return fsum(cost for cost in costs if cost is not None)


def tally_spending(entries: Iterable[tuple[str, Mapping[str, int], float | None]]) -> dict[str, Spending]:
    """Sum entries of (part, usage, dollars) by part."""
    sums: dict[str, Spending] = {}
    for part, usage, cost in entries:
        sums[part] = sums.get(part, Spending()).plus(usage, cost)
    return sums


def amount_of(used: Iterable[Usage], costs: Mapping[str, float | None] | None) -> Amount:
    """Return total usage and cost, as far as they are known."""
    return Amount(sum_known_costs((costs or {}).values()), sum(usage.input_tokens + usage.output_tokens for usage in used))


def usage_by_part(reply: Reply) -> dict[str, Usage]:
    """Return the usage of a reply by part."""
    return ({"agent": reply.usage} if reply.usage else {}) | dict(reply.besides)


def reported_costs(reply: Reply) -> dict[str, float]:
    """Return the dollars that the agent says its reply cost, by part. A single figure covers all parts."""
    if reply.cost_usd is None:
        return {}
    if isinstance(reply.cost_usd, Mapping):
        return {part: float(cost) for part, cost in reply.cost_usd.items()}
    return {"agent": float(reply.cost_usd)} | dict.fromkeys(reply.besides, 0.0)
