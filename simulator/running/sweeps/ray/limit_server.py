"""Shares the rate limits of providers and the spending limit of a sweep among all its runs, wherever they are played."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, final

import trio

from longspan.simulator.base.errors import LongspanError, StoppedError
from longspan.simulator.subject.ledger import Account, Ledger, Worst
from longspan.simulator.subject.spending_limit import NOTHING, UNLIMITED, Amount

__all__ = ["LimitServer"]

Value = TypeVar("Value")
Owner = tuple[str, int]
"""A run and the lease under which it is played."""

_UNKNOWN: Final = object()


@final
@dataclass(slots=True)
class _Acquisition:
    """A slot or an amount that `owner` has until `released` is set.

    `outcome` is the result of the request, or the amount it took. `account` is the account with the amount.
    """

    owner: Owner
    account: Account | None = None
    released: trio.Event = field(default_factory=trio.Event)
    outcome: Any = _UNKNOWN


@final
class LimitServer:
    """Limiters by provider, and a ledger with a `limit`, in a separate Trio loop. May be called from any thread.

    `revoke` releases everything that a lost owner had. Its amounts count as spent, since the provider may have charged for them.
    """

    def __init__(self, limit: Amount = UNLIMITED, spent: Amount = NOTHING, dearest: Amount = NOTHING) -> None:
        self._ledger = Ledger(limit, spent, dearest)
        self._limiters: dict[tuple[str, ...], Any] = {}
        self._acquired: dict[int, _Acquisition] = {}
        self._revoked: set[Owner] = set()
        self._tickets = 0
        self._ready = threading.Event()
        threading.Thread(target=lambda: trio.run(self._serve), daemon=True).start()
        self._ready.wait()

    def enter(self, owner: Owner, key: tuple[str, ...], limiter: type, limits: tuple[float, ...], slot: Any) -> Future[int]:
        """Return a ticket once the limiter `key` has let a request through (see `SharedLimits`)."""
        return self._ask(lambda: self._acquire(owner, lambda: self._slot(key, limiter, limits, slot)))

    def reserve(self, owner: Owner, worst: Worst) -> Future[int]:
        """Return a ticket for a call that may cost `worst`. Raises StoppedError if that may exceed the limit."""
        return self._ask(lambda: self._reserve(owner, worst))

    def reserved_amount(self, ticket: int) -> Amount:
        """Return the amount that is reserved for a ticket."""
        acquired = self._acquired.get(ticket)
        return acquired.account.reserved if acquired is not None and acquired.account is not None else NOTHING

    def draw(self, ticket: int, more: Amount) -> Future[str | None]:
        """Reserve more for a ticket, 0 for none. Return the reason if that is impossible."""
        return self._ask(lambda: self._draw(ticket, more))

    def spend(self, amount: Amount) -> Future[None]:
        """Count an amount that was spent without a ticket."""
        return self._ask(lambda: self._spend(amount))

    def release(self, ticket: int, outcome: Any) -> Future[None]:
        """Release a ticket. `outcome` is the slot as the request left it, or the amount spent, None if that is unknown."""
        return self._ask(lambda: self._release(ticket, outcome))

    def revoke(self, owner: Owner) -> Future[None]:
        """Release everything that a lost owner has, and refuse its later requests."""
        return self._ask(lambda: self._revoke(owner))

    # In the Trio loop.

    async def _serve(self) -> None:
        async with trio.open_nursery() as self._nursery:
            self._token = trio.lowlevel.current_trio_token()
            self._ready.set()
            await trio.sleep_forever()

    def _ask(self, request: Callable[[], Awaitable[Value]]) -> Future[Value]:
        future: Future[Value] = Future()

        async def answer() -> None:
            try:
                future.set_result(await request())
            except Exception as error:
                future.set_exception(error)

        self._token.run_sync_soon(self._nursery.start_soon, answer)
        return future

    async def _acquire(self, owner: Owner, make: Callable[[], AbstractAsyncContextManager[Callable[[Any], None]]]) -> int:
        """Enter the context manager that `make` returns in a separate task, which exits it when the ticket is released."""
        self._tickets += 1
        ticket = self._tickets
        if owner in self._revoked:
            raise StoppedError("the run has been moved to another node")
        acquired = self._acquired[ticket] = _Acquisition(owner)
        failed: list[Exception] = []

        async def hold_until_released(task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
            try:
                async with make() as settle:
                    if owner in self._revoked:  # revoked while it waited: it made no request
                        settle(None)
                    task_status.started()
                    await acquired.released.wait()
                    if acquired.outcome is not _UNKNOWN:
                        settle(acquired.outcome)
            except Exception as error:
                failed.append(error)
                task_status.started()
            finally:
                self._acquired.pop(ticket, None)

        await self._nursery.start(hold_until_released)
        if failed:
            raise failed[0]
        return ticket

    @asynccontextmanager
    async def _slot(
        self, key: tuple[str, ...], limiter: type, limits: tuple[float, ...], slot: Any
    ) -> AsyncIterator[Callable[[Any], None]]:
        shared = self._limiters.setdefault(key, limiter())
        shared.restrict(*limits)
        async with shared.slot(slot.tokens) as own:
            yield lambda outcome: own.copy_outcome(outcome) if outcome is not None else None

    async def _reserve(self, owner: Owner, worst: Worst) -> int:
        opened: list[Account] = []
        ticket = await self._acquire(owner, lambda: self._budget(worst, opened))
        if (acquired := self._acquired.get(ticket)) is not None:
            acquired.account = opened[0]
        return ticket

    async def _draw(self, ticket: int, more: Amount) -> str | None:
        acquired = self._acquired.get(ticket)
        return self._ledger.grow(acquired.account if acquired is not None else None, more)

    async def _spend(self, amount: Amount) -> None:
        self._ledger.count(amount)

    @asynccontextmanager
    async def _budget(self, worst: Worst, opened: list[Account]) -> AsyncIterator[Callable[[Any], None]]:
        async with self._ledger.open_account(None, worst) as account:
            opened.append(account)

            def settle(amount: Amount | None) -> None:
                account.amount = amount or NOTHING

            yield settle

    async def _release(self, ticket: int, outcome: Any) -> None:
        acquired = self._acquired.get(ticket)
        if acquired is None:
            raise LongspanError(f"ticket {ticket} is unknown or already released")
        acquired.outcome = _UNKNOWN if outcome is None else outcome
        acquired.released.set()

    async def _revoke(self, owner: Owner) -> None:
        self._revoked.add(owner)
        for acquired in self._acquired.values():
            if acquired.owner == owner:
                acquired.released.set()
