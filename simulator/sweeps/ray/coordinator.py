"""The hub of a sweep on Ray: an actor on the machine where the sweep was started, for all nodes to ask."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from longspan.simulator.sweeps.ray.limit_server import Desk
from longspan.simulator.sweeps.ray.segment_store import Depot
from longspan.simulator.sweeps.ray.segments import Answer, Segment

__all__ = ["Hub"]

Owner = tuple[str, int]


@final
class Hub:
    """A depot and a desk, by asyncio, since Ray's actors run on that: see `Depot` and `Desk`."""

    def __init__(self, folders: Mapping[str, Path], limit: float, spent: float) -> None:
        self._depot = Depot(folders)
        self._desk = Desk(limit, spent)

    async def grant(self, name: str, lease: int, why: str | None) -> int:
        """A new lease of a run, the last one having been `lease` (0: there was none)."""
        if lease:
            await asyncio.wrap_future(self._desk.forget((name, lease)))
        return self._depot.grant(name, why)

    async def fetch(self, name: str, lease: int) -> dict[str, bytes] | None:
        return self._depot.fetch(name, lease)

    async def take(self, segment: Segment) -> Answer:
        return self._depot.take(segment)

    async def release(self, name: str, lease: int) -> None:
        await asyncio.wrap_future(self._desk.forget((name, lease)))
        self._depot.release(name)

    async def stop(self) -> None:
        self._depot.stopping = True

    async def begun(self, name: str, lease: int) -> bool:
        return self._depot.begun(name, lease)

    async def quiet(self, seconds: float) -> list[Owner]:
        return self._depot.quiet(seconds)

    async def enter(self, owner: Owner, key: tuple[str, ...], limiter: type, limits: tuple[float, ...], slot: Any) -> int:
        return await asyncio.wrap_future(self._desk.enter(owner, key, limiter, limits, slot))

    async def reserve(self, owner: Owner, worst: float) -> int:
        return await asyncio.wrap_future(self._desk.reserve(owner, worst))

    async def give_back(self, ticket: int, outcome: Any) -> None:
        await asyncio.wrap_future(self._desk.give_back(ticket, outcome))
