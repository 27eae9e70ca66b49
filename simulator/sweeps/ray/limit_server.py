"""The desk: hands out what all runs of a sweep share, wherever they are played: places at a provider, and dollars."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final, TypeVar, final

import trio

from longspan.simulator.errors import LongspanError, StoppedError
from longspan.simulator.ledger import Ledger

__all__ = ["Desk"]

Value = TypeVar("Value")
Owner = tuple[str, int]
"""Who holds something: a run, and the lease with which it is played."""

_NOTHING: Final = object()


@final
@dataclass(slots=True)
class _Held:
    """Something handed out: `given_back` wakes whoever keeps it, with what became of it."""

    owner: Owner
    given_back: trio.Event = field(default_factory=trio.Event)
    outcome: Any = _NOTHING


@final
class Desk:
    """Limiters by provider, and a ledger of at most `limit` dollars, in a Trio run of its own; may be asked from any thread.

    What an owner held who has gone is given back by `forget`: dollars as spent, since the provider may have charged for them.
    """

    def __init__(self, limit: float = inf, spent: float = 0.0) -> None:
        self._ledger = Ledger(limit, spent=spent)
        self._limiters: dict[tuple[str, ...], Any] = {}
        self._held: dict[int, _Held] = {}
        self._gone: set[Owner] = set()
        self._tickets = 0
        self._ready = threading.Event()
        threading.Thread(target=lambda: trio.run(self._serve), daemon=True).start()
        self._ready.wait()

    def enter(self, owner: Owner, key: tuple[str, ...], limiter: type, limits: tuple[float, ...], slot: Any) -> Future[int]:
        """A ticket, once the limiter `key` has let a request through (see `longspan.simulator.sweeps.shared_limits.SharedLimits`)."""
        return self._ask(lambda: self._hold(owner, lambda: self._passing(key, limiter, limits, slot)))

    def reserve(self, owner: Owner, worst: float) -> Future[int]:
        """A ticket for a call that may cost `worst` dollars. Raises StoppedError where that may pass the limit."""
        return self._ask(lambda: self._hold(owner, lambda: self._paying(worst)))

    def give_back(self, ticket: int, outcome: Any) -> Future[None]:
        """What was held is over: `outcome` is the slot as the request left it, or the dollars that were spent."""
        return self._ask(lambda: self._give_back(ticket, outcome))

    def forget(self, owner: Owner) -> Future[None]:
        """The owner has gone: all that it held is given back, and what it still asks for is refused."""
        return self._ask(lambda: self._forget(owner))

    # In the Trio run.

    async def _serve(self) -> None:
        async with trio.open_nursery() as self._nursery:
            self._token = trio.lowlevel.current_trio_token()
            self._ready.set()
            await trio.sleep_forever()

    def _ask(self, question: Callable[[], Awaitable[Value]]) -> Future[Value]:
        future: Future[Value] = Future()

        async def answer() -> None:
            try:
                future.set_result(await question())
            except Exception as error:
                future.set_exception(error)

        self._token.run_sync_soon(self._nursery.start_soon, answer)
        return future

    async def _hold(self, owner: Owner, make: Callable[[], AbstractAsyncContextManager[Callable[[Any], None]]]) -> int:
        """Enter what `make` makes in a task of its own, which leaves it when the ticket is given back."""
        self._tickets += 1
        ticket = self._tickets
        if owner in self._gone:
            raise StoppedError("the run is played by another node by now")
        held = self._held[ticket] = _Held(owner)
        failed: list[Exception] = []

        async def keep(task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
            try:
                async with make() as settle:
                    if owner in self._gone:  # while it waited: nothing was done with it
                        settle(None)
                    task_status.started()
                    await held.given_back.wait()
                    if held.outcome is not _NOTHING:
                        settle(held.outcome)
            except Exception as error:
                failed.append(error)
                task_status.started()
            finally:
                self._held.pop(ticket, None)

        await self._nursery.start(keep)
        if failed:
            raise failed[0]
        return ticket

    @asynccontextmanager
    async def _passing(
        self, key: tuple[str, ...], limiter: type, limits: tuple[float, ...], slot: Any
    ) -> AsyncIterator[Callable[[Any], None]]:
        shared = self._limiters.setdefault(key, limiter())
        shared.restrict(*limits)
        async with shared.slot(slot.tokens) as own:
            yield lambda outcome: own.copy_outcome(outcome) if outcome is not None else None

    @asynccontextmanager
    async def _paying(self, worst: float) -> AsyncIterator[Callable[[Any], None]]:
        async with self._ledger.paying({}, worst) as account:

            def settle(dollars: float | None) -> None:
                account.costs = {"": dollars or 0.0}

            yield settle

    async def _give_back(self, ticket: int, outcome: Any) -> None:
        held = self._held.get(ticket)
        if held is None:
            raise LongspanError(f"nothing is held with ticket {ticket}")
        held.outcome = outcome
        held.given_back.set()

    async def _forget(self, owner: Owner) -> None:
        self._gone.add(owner)
        for held in self._held.values():
            if held.owner == owner:
                held.given_back.set()
