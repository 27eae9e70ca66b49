"""What pays for the calls of one agent: the ledger with its limit, and the run's record of spending.

The engine opens an account for each of its calls to an agent (`Purse.paying`). Calls that longspan itself makes to a provider meanwhile are
metered one by one (`metered`), wherever they come from: the agent's reply, a memory that was lent a model, a thread of its own. Everything
else is recorded as the agent reports it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeVar, final

import trio

from longspan.simulator.base.address_space import room
from longspan.simulator.base.errors import StoppedError
from longspan.simulator.contract.messages import Usage
from longspan.simulator.subject.ledger import Account, Ledger, Rates, Worst, expense_of
from longspan.simulator.subject.spending_limit import NOTHING, UNLIMITED, Amount
from longspan.simulator.subject.spending_record import Expense, Payer, Purpose, SpendingRecord, Work

__all__ = ["Purse", "current_purse", "metered", "note_free", "note_used"]

Value = TypeVar("Value")

_DISK: Final[trio.lowlevel.RunVar[trio.CapacityLimiter]] = trio.lowlevel.RunVar("disk")


@final
class _Opened(NamedTuple):
    """An account of a purse, and what it is for."""

    purse: Purse
    account: Account
    purpose: Purpose


@final
@dataclass(slots=True, eq=False)
class Purse:
    """Pays for the calls of one agent or judge, which the `payer` names in the ledger. `record` is None outside of a run.

    `conversation` is the one that is being played. `meters`: the models that longspan itself calls for the agent, by name or by rates.
    """

    ledger: Ledger = field(default_factory=Ledger)
    record: SpendingRecord | None = None
    payer: str = ""
    by: Payer = "agent"
    conversation: str | None = None
    meters: list[str | Rates] = field(default_factory=list)
    _refused: StoppedError | None = None
    """A metered call was refused because of a limit: nothing more is paid for, whatever the agent makes of the error that it got."""
    _opened: _Opened | None = None
    """The account that is open. Only a judge has several open at once, and it calls its model in their tasks."""

    @contextmanager
    def held(self) -> Iterator[None]:
        """Have this purse pay for the calls of all providers that are made in the context (see `current_purse`)."""
        token = _PURSE.set(self)
        try:
            yield
        finally:
            _PURSE.reset(token)

    @asynccontextmanager
    async def paying(
        self,
        models: Mapping[str, str | Rates] | None,
        worst: Worst,
        work: Work,
        *,
        turn: int | None = None,
        query: str | None = None,
        again: bool = False,
        partial_models: bool = False,
    ) -> AsyncIterator[Account]:
        """Reserve the worst case of a call that does `work`, for a turn or a judge's query. `models` are those that it pays for, or only
        some of them (`partial_models`).

        Raises StoppedError before the call if it could exceed the limit, and afterwards if a metered call was refused for that reason.
        """
        if self._refused is not None:
            raise self._refused
        record = self.record
        async with self.ledger.paying(models, worst) as account:
            account.is_metered, account.partial_models = self.is_metered, partial_models
            purpose, call = Purpose(work, self.conversation, turn, query, again=again), None
            if record is not None and account.is_paid:
                purpose = purpose._replace(task=record.new_task())
                if account.reports:
                    bounded = account.known and self.ledger.limit != UNLIMITED  # without a limit, nobody asks for the worst case
                    call = record.begin(self.by, None, purpose, account.reserved, bounded=bounded)
            self._opened = _Opened(self, account, purpose)
            token = _OPENED.set(self._opened)
            try:
                yield account
            finally:
                _OPENED.reset(token)
                self._opened = None
                if record is not None and (account.expenses or (call is not None and account.expenses is not None)):
                    with trio.CancelScope(shield=True):
                        await _run_in_thread(_record_reported, record, None if account.failed else call, self.by, purpose, account.expenses)
                if self._refused is not None:
                    raise self._refused

    def is_metered(self, rates: str | Rates) -> bool:
        """Return whether longspan itself calls a model for the agent. Rates are compared by identity: two models may cost the same."""
        return any(rates is each or (isinstance(rates, str) and rates == each) for each in self.meters)

    def begin(self, model: str, rates: str | Rates, at_most: Usage) -> _Metered:
        """Check that a call to `model` may be made, reserve its worst case, and record that it begins. Raises StoppedError."""
        opened = _OPENED.get()
        if opened is None or opened.purse is not self:
            opened = self._opened
        account = opened.account if opened is not None else None
        worst = expense_of(rates, at_most).amount
        try:
            self.ledger.draw(account, worst)
        except StoppedError as stopped:
            self._refused = self._refused or stopped
            raise
        call = None
        if self.record is not None:
            if opened is not None:
                purpose = opened.purpose
            else:
                purpose = Purpose("background", self.conversation, task=self.record.new_task())
            call = self.record.begin(self.by, model, purpose, worst)
        return _Metered(self, account, rates, worst, call)


def _record_reported(record: SpendingRecord, call: int | None, by: Payer, purpose: Purpose, expenses: Sequence[Expense]) -> None:
    """Record what an agent reports of its own calls. `call` is None if it was not expected to make any, and for one that failed, which
    stays without a known cost."""
    if call is None and expenses:
        call = record.begin(by, None, purpose, NOTHING)
    if call is not None:
        record.end(call, expenses)


@final
@dataclass(slots=True)
class _Metered:
    """A call that is being metered."""

    purse: Purse
    account: Account | None
    rates: str | Rates
    worst: Amount
    call: int | None
    used: Usage | None = None
    free: bool = False

    def end(self) -> None:
        """Record what the call took. If nobody knows, it counts as the worst case."""
        expenses = [] if self.used is None or self.free else [expense_of(self.rates, self.used)]
        amount = expenses[0].amount if expenses else NOTHING if self.free else self.worst
        self.purse.ledger.meter(self.account, self.worst, amount)
        if self.call is not None and self.purse.record is not None and (expenses or self.free):
            self.purse.record.end(self.call, expenses)


_PURSE: Final[ContextVar[Purse | None]] = ContextVar("purse", default=None)
_OPENED: Final[ContextVar[_Opened | None]] = ContextVar("opened account", default=None)
_CALL: Final[ContextVar[_Metered | None]] = ContextVar("metered call", default=None)


async def _run_in_thread(call: Callable[..., Value], *arguments: Any) -> Value:
    if room() is not None:  # the memory is limited, and a thread would reserve some
        return call(*arguments)
    return await trio.to_thread.run_sync(call, *arguments, limiter=_disk())


def _disk() -> trio.CapacityLimiter:
    """Return this Trio run's limit of threads that write records: separate, so that agents that block threads do not delay them."""
    try:
        return _DISK.get()
    except LookupError:
        _DISK.set(limiter := trio.CapacityLimiter(8))
        return limiter


def current_purse() -> Purse | None:
    """Return the purse that pays for the calls of a provider that is made here; None where nothing is recorded or limited."""
    return _PURSE.get()


@asynccontextmanager
async def metered(purse: Purse | None, model: str, rates: str | Rates, at_most: Usage) -> AsyncIterator[None]:
    """Surround a call to `model`, priced by `rates`, that can use `at_most`. Inside, `note_used` or `note_free` says what it took.

    Raises StoppedError if the call could exceed a limit, and JournalError if it cannot be recorded.
    """
    if purse is None:
        yield
        return
    if purse.ledger.waits:
        call = await _run_in_thread(purse.begin, model, rates, at_most)
    else:
        call = purse.begin(model, rates, at_most)
    token = _CALL.set(call)
    try:
        yield
    finally:
        _CALL.reset(token)
        with trio.CancelScope(shield=True):
            await _run_in_thread(call.end)  # it waits for the disk


def note_used(usage: Usage) -> None:
    """Note what the call that is being metered has used, as soon as that is known: the answer may turn out to be unreadable."""
    if (call := _CALL.get()) is not None:
        call.used = usage


def note_free() -> None:
    """Note that the call that is being metered cost nothing: it never reached the provider, or the provider refused it."""
    if (call := _CALL.get()) is not None:
        call.free = True
