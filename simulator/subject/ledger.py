"""The cost of conversations. Each reply is priced as it arrives, and no turn begins that could exceed a limit."""

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
from longspan.simulator.subject.spending_limit import NOTHING, UNLIMITED, Amount, total
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
    "Unpriced",
    "Worst",
    "amount_of",
    "check_priced",
    "expense_of",
    "known_cost",
    "models_of",
    "price",
    "stated_by",
    "tally",
    "total_cost",
    "used_by",
]

Costs = dict[str, float | None]
"""Dollars by part (agent, embedder, judge); None if a price is unknown."""


LOCAL: Final = "gguf"
"""The provider name of models that run in this process and cost nothing."""

MAX_TOKENS: Final = 10**12
"""The largest number of tokens that is credible for a reply."""

MAX_DOLLARS: Final = 1_000_000
"""The largest cost in dollars that is credible for a reply."""

DROPPED: Final = "dropped"
"""The name for the cost of dropped replies. An agent that does not support `observe` replies to turns that it should only be told of, and
the reply is dropped."""


@final
class Rates(NamedTuple):
    """The prices of a model as its user states them, in dollars per million tokens of input, input read from a cache, and output."""

    input: float
    cached: float
    output: float

    def cost(self, usage: Usage) -> float:
        """Return the cost of `usage` in dollars."""
        fresh = usage.input_tokens - usage.cached_tokens
        return fsum((fresh * self.input, usage.cached_tokens * self.cached, usage.output_tokens * self.output)) / 1e6


@lru_cache(maxsize=1024)
def price(model: str | Rates, usage: Usage) -> float | None:
    """Return the cost of `usage` in dollars, by rates or by the price list of genai-prices, or None for a model that is not listed.

    `model` is PROVIDER/MODEL, as in a spec: "openai/gpt-4o". If the provider is not listed the price is unknown whatever the model is,
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


def expense_of(model: str | Rates, usage: Usage) -> Expense:
    """Return `usage` with its cost, by rates or by the price list."""
    return Expense(usage, price(model, usage))


def models_of(agent: object) -> Mapping[str, str | Rates] | None:
    """Return the models that an agent pays for, by part, as PROVIDER/MODEL or their rates: empty if it is free, None if unknown."""
    models: Mapping[str, str | Rates] | None = getattr(agent, "models", None)
    return models


def check_priced(agent: object, spec: str) -> None:
    """Check that the cost of the agent's replies can be known. Raises InputError if its models or one of their prices is unknown."""
    models = models_of(agent)
    unknown = [str(model) for model in (models or {}).values() if price(model, Usage(1, 0, 1)) is None]
    if models is None or unknown:
        problem = f"the price of {', '.join(unknown)} is unknown" if unknown else "its cost is unknown"
        remedy = "set price_in= and price_out=, or leave out --max-cost" if unknown else "leave out --max-cost"
        raise InputError(f"--max-cost: agent {spec}: {problem}, so that a limit cannot be enforced; {remedy}")


@final
@dataclass(frozen=True, slots=True)
class Unpriced:
    """A call whose cost the agent cannot tell beforehand. `payer` names the agent and the kind of call. `depth` is the length of the
    conversation so far in characters, since replies cost more as it grows. `seldom` means that most such calls cost nothing, as with a
    memory that adds turns in batches."""

    payer: str
    depth: int
    seldom: bool = False


Worst = Amount | Unpriced
"""The most that a call may cost, or the call itself if that is unknown."""


@final
@dataclass(slots=True)
class _Seen:
    """The most that a payer's calls have cost so far, in conversations of up to `depth` characters. `alone` means that a call in a longer
    conversation is under way. `problem` says why no more calls can be paid for."""

    dearest: Amount
    depth: int = -1
    alone: bool = False
    problem: str | None = None

    def is_new(self, call: Unpriced) -> bool:
        """Return whether no similar call has shown its cost yet."""
        return call.depth > self.depth or (call.seldom and self.dearest == NOTHING)


@final
@dataclass(slots=True)
class Account:
    """The bill of one call to an agent, for which `reserved` was set aside. `settle` closes it. `known`: that is its worst case.

    `is_metered` says of a model's name or rates whether longspan itself calls it, and `metered` what such calls have cost so far;
    `pending` are the worst cases of those that are being made.
    `expenses`: what the agent reports besides, None until it does. `failed`: the call did, so that the agent may have paid for more than it
    reports. `partial_models`: it may also pay for models that `models` lacks.
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
        """Whether the call may cost something."""
        return self.models != {}

    @property
    def reports(self) -> bool:
        """Whether only the agent can say what some of its calls cost."""
        return self.models is None or self.partial_models or not all(map(self.is_metered, self.models.values()))

    def settle(self, used: Mapping[str, Usage], stated: Mapping[str, float] | None = None, *, failed: bool = False) -> Costs | None:
        """Record and return the cost of the usage in dollars by part, or None if no usage is known. Costs that the agent has `stated` take
        precedence. `failed`: this is what is known of a call that failed."""
        self.failed = failed
        unknown = 0.0 if self.models == {} else None
        models = self.models or {}
        costs: Costs = {part: price(models[part], usage) if part in models else unknown for part, usage in used.items()}
        costs |= stated or {}
        reported = [part for part in costs if part not in models or not self.is_metered(models[part])]
        self.expenses = [Expense(used.get(part, Usage()), costs[part], part) for part in reported]
        self.amount = total(expense.amount for expense in self.expenses)
        return costs or None

    def total(self) -> Amount:
        """Return everything that the call has cost, or if the agent failed to say it, may have cost."""
        known = self.metered.plus(self.amount or NOTHING)
        return known.most(self.reserved) if self.reports and (self.failed or self.amount is None) else known


@dataclass(slots=True)
class Ledger:
    """Dollars and tokens spent by any number of conversations, under a `limit`.

    The worst case of a call is reserved before the call is made. If a payer cannot tell its worst case, the most that one of its calls has
    cost so far is reserved, and at least `dearest`. Until such a payer has made a call in a conversation of this length, its calls are made
    one at a time, so that together they exceed the limit by the cost of one call at most. Usage with an unknown price is not counted: if
    there is a limit, `require_known` and `require_told` reject it.
    """

    waits: ClassVar[bool] = False
    """Whether `draw` has to wait for another process."""

    limit: Amount = UNLIMITED
    spent: Amount = NOTHING
    dearest: Amount = NOTHING
    _reserved: list[Amount] = field(default_factory=list)
    _seen: dict[str, _Seen] = field(default_factory=dict)
    _settled: trio.Condition = field(default_factory=trio.Condition)
    _lock: Lock = field(default_factory=Lock)

    @asynccontextmanager
    async def paying(self, models: Mapping[str, str | Rates] | None, worst: Worst = NOTHING) -> AsyncIterator[Account]:
        """Reserve the worst case of a call, and afterwards release the part that it did not use.

        If a call fails or is cancelled, and the agent does not say what it cost, it counts as the worst case, because its provider may have
        charged for it. Raises StoppedError if the limit could be exceeded and no other call is pending.
        """
        call = worst if isinstance(worst, Unpriced) else None
        seen = self._seen_of(call)
        async with self._settled:
            while True:
                if seen.problem is not None:
                    raise AgentError(seen.problem)
                reserved = seen.dearest if isinstance(worst, Unpriced) else worst
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
        """Check that a call to a provider may be made that can cost `worst`. May be called from any thread, and does not wait for others.

        The call draws on what is reserved for its `account`. What exceeds that is reserved as well, unless the account's worst case was
        known: then only a call after it has been used up is too much. Raises StoppedError. Each call is metered once afterwards.
        """
        if self.limit != UNLIMITED:
            more = worst
            if account is not None:
                more = total([account.metered, *account.pending, worst]).beyond(account.reserved)
                if account.known and not account.reserved.is_used_up_by(account.metered):
                    more = NOTHING
            if (problem := self.grow(account, more)) is not None:
                raise StoppedError(problem)
        with self._lock:
            (self._reserved if account is None or account.closed else account.pending).append(worst)

    def grow(self, account: Account | None, more: Amount) -> str | None:
        """Reserve more for an account. Return why that cannot be done. Without an account, only check that it could be done."""
        with self._lock:
            if account is not None and account.closed:  # the call comes too late for it
                account = None
            whole = more if account is None else account.reserved.plus(more)
            problem = self._excess(more, whole) if more != NOTHING else None
            if problem is None and account is not None:
                self._reserved.remove(account.reserved)
                account.reserved = account.reserved.plus(more)
                self._reserved.append(account.reserved)
        return problem

    def count(self, amount: Amount) -> None:
        """Count what was spent without an account."""
        with self._lock:
            self.spent = self.spent.plus(amount)

    def meter(self, account: Account | None, worst: Amount, amount: Amount) -> bool:
        """Count what a call to a provider has cost. May be called from any thread. Return whether the call outlived its account, or had
        none."""
        with self._lock:
            if account is not None and not account.closed:
                account.pending.remove(worst)
                account.metered = account.metered.plus(amount)
                return False
            self._reserved.remove(worst)
            self.spent = self.spent.plus(amount)
            return True

    def _seen_of(self, call: Unpriced | None) -> _Seen:
        """Return the record of similar calls. No record is kept for calls whose worst case is known."""
        return self._seen.setdefault(call.payer, _Seen(self.dearest)) if call is not None else _Seen(NOTHING)

    def _refuse(self, call: Worst, problem: str) -> AgentError:
        """Refuse to pay for any more such calls, and return the error."""
        if isinstance(call, Unpriced):
            self._seen_of(call).problem = problem
        return AgentError(problem)

    def _excess(self, more: Amount, worst: Amount) -> str | None:
        """Say which limit would be exceeded if `more` was reserved for a turn that can cost `worst` in all, and the remedy; None if none
        would be."""
        reached = total([self.spent, *self._reserved, more])
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
        """Return the worst case of a reply; without a limit, nothing."""
        if self.limit == UNLIMITED:
            return NOTHING
        known = _worst_case(agent, message)
        return known if known is not None else NOTHING if models_of(agent) == {} else Unpriced(payer, depth)

    def worst_of(self, agent: Any, work: str, payer: str, depth: int, message: Message | None = None, *, seldom: bool = False) -> Worst:
        """Return the worst case of `work` other than a reply, for `message` if there is one; without a limit, nothing."""
        if self.limit == UNLIMITED or models_of(agent) == {}:
            return NOTHING
        known = _worst_case(agent, message, replies=False) if message is not None else None
        return known if known is not None else Unpriced(f"{payer} {work}", depth, seldom)

    def require_told(self, call: Worst, costs: Costs | None, work: str) -> None:
        """Check that a call for `work` states the cost of everything it used. Raises AgentError if a limit cannot be enforced."""
        unknown = [part for part, cost in (costs or {}).items() if cost is None]
        if self.limit.dollars < inf and unknown:
            raise self._refuse(
                call,
                f"{work} does not tell the cost of its {', '.join(unknown)}, so that --max-cost cannot be enforced; give cost_usd, or "
                "usage with a priced model, set price_in= and price_out=, or leave out --max-cost",
            )

    def require_known(self, account: Account, call: Worst, used: Mapping[str, Usage], costs: Costs | None) -> None:
        """Check that a reply states every quantity that is limited. Raises AgentError if a limit cannot be enforced."""
        if not isinstance(call, Unpriced) or not account.reports:
            return  # a metered agent that says nothing has used nothing
        unknown = [part for part, cost in (costs or {}).items() if cost is None]
        if self.limit.dollars < inf and (costs is None or unknown):
            of = f" of its {', '.join(unknown)}" if unknown and unknown != ["agent"] else ""
            raise self._refuse(
                call,
                f"the reply does not tell its cost{of}, so that --max-cost cannot be enforced; give cost_usd, or usage with a priced "
                "model, set price_in= and price_out=, or leave out --max-cost",
            )
        if self.limit.tokens < inf and not used:
            raise self._refuse(call, "the reply has no usage, so that --max-tokens-total cannot be enforced; give usage, or leave it out")


def _worst_case(agent: Any, message: Message, *, replies: bool = True) -> Amount | None:
    """Return the worst case of a message if the agent can tell it, otherwise None. With `replies`, the agent answers; without, it only
    notes a turn."""
    worst_case = getattr(agent, "worst_case", None)
    if not callable(worst_case):
        return None
    models = models_of(agent) or {}
    used: dict[str, Usage] = {part: usage for part, usage in worst_case(message).items() if replies or part != "agent"}
    return amount_of(used.values(), {part: price(models[part], usage) for part, usage in used.items() if part in models})


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
    """Sum entries of (part, usage, dollars) by part."""
    sums: dict[str, Spending] = {}
    for part, usage, cost in entries:
        sums[part] = sums.get(part, Spending()).plus(usage, cost)
    return sums


def amount_of(used: Iterable[Usage], costs: Mapping[str, float | None] | None) -> Amount:
    """Return the amount of usage and the costs by part, as far as they are known."""
    return Amount(known_cost((costs or {}).values()), sum(usage.input_tokens + usage.output_tokens for usage in used))


def used_by(reply: Reply) -> dict[str, Usage]:
    """Return the usage of a reply by part."""
    return ({"agent": reply.usage} if reply.usage else {}) | dict(reply.besides)


def stated_by(reply: Reply) -> dict[str, float]:
    """Return the dollars that an agent says its reply cost, by part. A single figure covers all parts together."""
    if reply.cost_usd is None:
        return {}
    if isinstance(reply.cost_usd, Mapping):
        return {part: float(cost) for part, cost in reply.cost_usd.items()}
    return {"agent": float(reply.cost_usd)} | dict.fromkeys(reply.besides, 0.0)
