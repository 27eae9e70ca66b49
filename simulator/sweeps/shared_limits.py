"""Rate limits, and limits of dollars and tokens, that several processes share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from typing import Any, Final, Protocol, final

import trio

from longspan.simulator.base.errors import AgentError
from longspan.simulator.subject.ledger import Account, Ledger, Rates, Unpriced, Worst
from longspan.simulator.subject.spending_limit import NOTHING, Amount

__all__ = ["SHARED_LIMITS", "SharedLedger", "SharedLimits"]


class SharedLimits(Protocol):
    """Admits the requests of all processes of a sweep."""

    def admit(self, key: tuple[str, ...], limiter: type, limits: tuple[float, ...], slot: Any) -> AbstractAsyncContextManager[None]:
        """Wait until the limiter `key` admits a request, which is made inside the block.

        `limiter` is the limiter's class. `limits` are the arguments of its `restrict`. `slot` describes the request beforehand and
        its outcome afterwards.
        """
        ...


SHARED_LIMITS: Final[ContextVar[SharedLimits | None]] = ContextVar("SHARED_LIMITS", default=None)
"""The limits shared with other processes; None where this process has limits of its own."""


@final
class SharedLedger(Ledger):
    """This process's part of the spending under a `limit` shared with others.

    `reserve` asks the keeper of the common ledger for a ticket, and raises StoppedError. `release` returns the ticket with the amount
    spent, or None if that is unknown.
    """

    def __init__(
        self, limit: Amount, reserve: Callable[[Worst], Awaitable[int]], release: Callable[[int, Amount | None], Awaitable[None]]
    ) -> None:
        super().__init__(limit)
        self._reserve = reserve
        self._release = release

    @asynccontextmanager
    async def paying(self, models: Mapping[str, str | Rates] | None, worst: Worst = NOTHING) -> AsyncIterator[Account]:
        ticket = await self._reserve(worst)
        account, done = Account(models), False
        try:
            if isinstance(worst, Unpriced) and (problem := self._seen_of(worst).problem) is not None:
                account.amount = NOTHING
                raise AgentError(problem)
            yield account
            done = True
        finally:
            with trio.CancelScope(shield=True):
                await self._release(ticket, account.amount if done or account.amount == NOTHING else None)
