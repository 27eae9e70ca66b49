"""Pays for the calls of one agent, from the ledger with its limit, and records them in the run's record of spending.

The engine opens an account for each call to an agent (`Purse.open_account`). During it, `meter_call` meters each call that longspan makes
to a provider, whether for the agent's reply, for a memory with a borrowed model, or from a background thread. Other calls are recorded as
the agent reports them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeVar, final

import trio

from longspan.simulator.base.address_space import free_address_space
from longspan.simulator.base.errors import StoppedError
from longspan.simulator.contract.messages import Usage
from longspan.simulator.subject.ledger import Account, Ledger, Rates, Worst, expense_of
from longspan.simulator.subject.spending_limit import NOTHING, UNLIMITED, Amount
from longspan.simulator.subject.spending_record import Expense, Payer, Purpose, SpendingRecord, Work

__all__ = ["Purse", "current_purse", "meter_call", "note_free", "note_used"]

Value = TypeVar("Value")

_DISK: Final[trio.lowlevel.RunVar[trio.CapacityLimiter]] = trio.lowlevel.RunVar("disk")


@final
class _OpenAccount(NamedTuple):
    """An open account of a purse, and the purpose of its calls."""

    purse: Purse
    account: Account
    purpose: Purpose


@final
@dataclass(slots=True, eq=False)
class Purse:
    """Pays for the calls of one agent or judge. `payer` names it in the ledger. `record` is None outside of a run.

    `conversation` is the one being played. `meters` lists the models that longspan calls for the agent, by name or by rates.
    """

    ledger: Ledger = field(default_factory=Ledger)
    record: SpendingRecord | None = None
    payer: str = ""
    by: Payer = "agent"
    conversation: str | None = None
    meters: list[str | Rates] = field(default_factory=list)
    _refused: StoppedError | None = None
    """Set when a limit refuses a metered call. Nothing is paid for after that, even if the agent swallows the error."""
    _opened: _OpenAccount | None = None
    """The open account. Only a judge opens several at the same time. Its tasks find theirs in `_OPENED`."""

    @contextmanager
    def pay_in_context(self) -> Iterator[None]:
        """Pay for all calls to providers that are made in this context (see `current_purse`)."""
        token = _PURSE.set(self)
        try:
            yield
        finally:
            _PURSE.reset(token)

    @asynccontextmanager
    async def open_account(
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
        """Reserve the worst case of a call that does `work`, for a turn or for a judge's query.

        `models` are the models that the call pays for, or only some of them if `partial_models` is set. `again`: the agent gets the turn a
        second time.

        Raises StoppedError before the call if it could exceed the limit, and after the call if a metered call was refused.
        """
        if self._refused is not None:
            raise self._refused
        record = self.record
        async with self.ledger.open_account(models, worst) as account:
            account.is_metered, account.partial_models = self.is_metered, partial_models
            purpose, call = Purpose(work, self.conversation, turn, query, again=again), None
            if record is not None and account.is_paid:
                purpose = purpose._replace(task=record.new_task())
                if account.reports:
                    bounded = account.known and self.ledger.limit != UNLIMITED  # without a limit, no worst case is computed
                    call = record.begin(self.by, None, purpose, account.reserved, bounded=bounded)
            self._opened = _OpenAccount(self, account, purpose)
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
        """Return whether longspan calls a model for the agent. Rates are compared by identity: two models may have equal prices."""
        return any(rates is each or (isinstance(rates, str) and rates == each) for each in self.meters)

    def begin(self, model: str, rates: str | Rates, at_most: Usage) -> _MeteredCall:
        """Reserve the worst case of a call to `model` and record its start. Raises StoppedError if it could exceed the limit."""
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
        return _MeteredCall(self, account, rates, worst, call)


def _record_reported(record: SpendingRecord, call: int | None, by: Payer, purpose: Purpose, expenses: Sequence[Expense]) -> None:
    """Record the calls that an agent reports. `call` is None for an agent that was not expected to make any, and for a failed call.

    A failed call stays in the record without a known cost.
    """
    if call is None and expenses:
        call = record.begin(by, None, purpose, NOTHING)
    if call is not None:
        record.end(call, expenses)


@final
@dataclass(slots=True)
class _MeteredCall:
    """A metered call in progress."""

    purse: Purse
    account: Account | None
    rates: str | Rates
    worst: Amount
    call: int | None
    used: Usage | None = None
    free: bool = False

    def end(self) -> None:
        """Record the usage of the call. If it is unknown, count the worst case."""
        expenses = [] if self.used is None or self.free else [expense_of(self.rates, self.used)]
        amount = expenses[0].amount if expenses else NOTHING if self.free else self.worst
        self.purse.ledger.meter(self.account, self.worst, amount)
        if self.call is not None and self.purse.record is not None and (expenses or self.free):
            self.purse.record.end(self.call, expenses)


_PURSE: Final[ContextVar[Purse | None]] = ContextVar("purse", default=None)
_OPENED: Final[ContextVar[_OpenAccount | None]] = ContextVar("opened account", default=None)
_CALL: Final[ContextVar[_MeteredCall | None]] = ContextVar("metered call", default=None)


async def _run_in_thread(call: Callable[..., Value], *arguments: Any) -> Value:
    if free_address_space() is not None:  # memory is limited, and each thread reserves address space for its stack
        return call(*arguments)
    return await trio.to_thread.run_sync(call, *arguments, limiter=_disk())


def _disk() -> trio.CapacityLimiter:
    """Return the limiter for threads that write records. It is separate, so that agents that block threads cannot delay records."""
    try:
        return _DISK.get()
    except LookupError:
        _DISK.set(limiter := trio.CapacityLimiter(8))
        return limiter


def current_purse() -> Purse | None:
    """Return the purse for calls to providers in this context, or None if they are neither recorded nor limited."""
    return _PURSE.get()


@asynccontextmanager
async def meter_call(purse: Purse | None, model: str, rates: str | Rates, at_most: Usage) -> AsyncIterator[None]:
    """Meter a call to `model`, priced by `rates`, that uses at most `at_most`. Call `note_used` or `note_free` inside.

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
    """Note the usage of the metered call. Call it as soon as usage is known: parsing the answer may still fail."""
    if (call := _CALL.get()) is not None:
        call.used = usage


def note_free() -> None:
    """Note that the metered call cost nothing: it never reached the provider, or the provider refused it."""
    if (call := _CALL.get()) is not None:
        call.free = True
