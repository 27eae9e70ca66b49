"""The coordinator of a sweep on Ray: an actor on the machine that started the sweep, which all nodes call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from longspan.simulator.running.sweeps.ray.limit_server import LimitServer
from longspan.simulator.running.sweeps.ray.segment_store import SegmentStore
from longspan.simulator.running.sweeps.ray.segments import Answer, Segment
from longspan.simulator.subject.ledger import Worst
from longspan.simulator.subject.spending_limit import Amount

__all__ = ["Coordinator"]

Owner = tuple[str, int]


@final
class Coordinator:
    """An asyncio front, as Ray's actors need, to a `SegmentStore` and a `LimitServer`, which document its methods."""

    def __init__(self, folders: Mapping[str, Path], limit: Amount, spent: Amount, dearest: Amount) -> None:
        self._store = SegmentStore(folders)
        self._limits = LimitServer(limit, spent, dearest)

    async def grant(self, name: str, lease: int, why: str | None) -> int:
        """Grant a new lease of a run, whose last one was `lease` (0: none)."""
        if lease:
            await asyncio.wrap_future(self._limits.revoke((name, lease)))
        return self._store.grant(name, why)

    async def fetch(self, name: str, lease: int) -> dict[str, bytes] | None:
        return self._store.fetch(name, lease)

    async def take(self, segment: Segment) -> Answer:
        return self._store.take(segment)

    async def release(self, name: str, lease: int) -> None:
        await asyncio.wrap_future(self._limits.revoke((name, lease)))
        self._store.release(name)

    async def stop(self) -> None:
        self._store.stopping = True

    async def has_started(self, name: str, lease: int) -> bool:
        return self._store.has_started(name, lease)

    async def silent_owners(self, seconds: float) -> list[Owner]:
        return self._store.silent_owners(seconds)

    async def enter(self, owner: Owner, key: tuple[str, ...], limiter: type, limits: tuple[float, ...], slot: Any) -> int:
        return await asyncio.wrap_future(self._limits.enter(owner, key, limiter, limits, slot))

    async def reserve(self, owner: Owner, worst: Worst) -> tuple[int, Amount]:
        ticket = await asyncio.wrap_future(self._limits.reserve(owner, worst))
        return ticket, self._limits.reserved_amount(ticket)

    async def draw(self, ticket: int, more: Amount) -> str | None:
        return await asyncio.wrap_future(self._limits.draw(ticket, more))

    async def spend(self, amount: Amount) -> None:
        await asyncio.wrap_future(self._limits.spend(amount))

    async def release_ticket(self, ticket: int, outcome: Any) -> None:
        await asyncio.wrap_future(self._limits.release(ticket, outcome))
