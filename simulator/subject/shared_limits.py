"""Rate limits and spending limits that several processes share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from typing import Any, Final, Protocol, final

import trio

from longspan.simulator.base.errors import AgentError
from longspan.simulator.subject.ledger import Account, Ledger, Rates, UnpricedCall, Worst
from longspan.simulator.subject.spending_limit import NOTHING, Amount

__all__ = ["SHARED_LIMITS", "Keeper", "SharedLedger", "SharedLimits"]


class SharedLimits(Protocol):
    """Admits the requests of all processes of a sweep."""

    def admit(self, key: tuple[str, ...], limiter: type, limits: tuple[float, ...], slot: Any) -> AbstractAsyncContextManager[None]:
        """Wait until the limiter `key` admits a request, which the block then makes.

        `limiter` is the limiter's class, and `limits` the arguments of its `restrict`. `slot` describes the request before the block and
        its outcome after it.
        """
        ...


SHARED_LIMITS: Final[ContextVar[SharedLimits | None]] = ContextVar("SHARED_LIMITS", default=None)
"""The limits shared with other processes, or None if this process has its own."""


class Keeper(Protocol):
    """Keeps the common ledger of several processes. Amounts are in dollars and tokens."""

    async def reserve(self, worst: Worst) -> tuple[int, Amount]:
        """Return a ticket for a call, and the amount reserved for it. Raises StoppedError if the limit could be exceeded."""
        ...

    async def release(self, ticket: int, amount: Amount | None) -> None:
        """Give back a ticket with the amount spent, or None if that is unknown."""
        ...

    def draw(self, ticket: int, more: Amount) -> str | None:
        """Reserve more for a ticket (0: for no ticket). Return the problem if the limit does not allow it. Thread-safe; blocks."""
        ...

    def spend(self, amount: Amount) -> None:
        """Count an expense without a ticket. Thread-safe."""
        ...


@final
class SharedLedger(Ledger):
    """One process's ledger under a `limit` shared with other processes. The `keeper` has the common ledger."""

    waits = True

    def __init__(self, limit: Amount, keeper: Keeper) -> None:
        super().__init__(limit)
        self._keeper = keeper
        self._tickets: dict[int, int] = {}

    @asynccontextmanager
    async def open_account(self, models: Mapping[str, str | Rates] | None, worst: Worst = NOTHING) -> AsyncIterator[Account]:
        ticket, reserved = await self._keeper.reserve(worst)
        account, done = Account(models, reserved, known=not isinstance(worst, UnpricedCall)), False
        self._tickets[id(account)] = ticket
        try:
            if isinstance(worst, UnpricedCall) and (problem := self._record_of(worst).problem) is not None:
                account.amount = NOTHING
                raise AgentError(problem)
            yield account
            done = True
        finally:
            with self._lock:
                account.closed = True
                self._reserved += account.pending
            del self._tickets[id(account)]
            with trio.CancelScope(shield=True):
                known = account.amount is not None or (not account.reports and (done or account.metered != NOTHING))
                await self._keeper.release(ticket, account.total() if known else None)

    def grow(self, account: Account | None, more: Amount) -> str | None:
        if account is not None and more == NOTHING:
            return None
        problem = self._keeper.draw(0 if account is None else self._tickets.get(id(account), 0), more)
        if problem is None and account is not None:
            account.reserved = account.reserved.plus(more)
        return problem

    def meter(self, account: Account | None, worst: Amount, amount: Amount) -> bool:
        apart = super().meter(account, worst, amount)
        if apart:
            self._keeper.spend(amount)
        return apart
