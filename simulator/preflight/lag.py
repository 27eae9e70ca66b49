"""The time until a fact can be found after it was told: some memories write in the background, or only when enough has been said."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, final

import trio

__all__ = ["Lag", "measure_lag"]

MOST_TURNS: Final = 12
"""Waiting by turns is given up after this many turns."""

MOST_SECONDS: Final = 5.0
"""Waiting is given up after this many seconds."""

STEP: Final = 1 / 16
"""The number of seconds between two searches."""


@final
class Lag(NamedTuple):
    """A fact is found once so many turns have followed it, or after so many seconds. Both are None if it was not found at all."""

    turns: int | None
    seconds: float | None


async def measure_lag(tell: Callable[[int], Awaitable[None]], finds: Callable[[int], Awaitable[bool]]) -> Lag:
    """Return the lag of an agent. `tell` tells it the fact with a number. `finds` asks for that fact, which is a turn, and returns whether
    it is found.

    To find out whether a fact takes turns or seconds, another fact is told, and nothing is said while waiting for it.
    """
    began = trio.current_time()
    await tell(1)
    turns = 0
    while not await finds(1):
        turns += 1
        if turns > MOST_TURNS:
            return await _by_waiting(1, began, finds)
    seconds = trio.current_time() - began
    if not turns:
        return Lag(0, 0.0)
    began = trio.current_time()
    await tell(2)
    await trio.sleep(seconds)
    return Lag(0, trio.current_time() - began) if await finds(2) else Lag(turns, 0.0)


async def _by_waiting(number: int, began: float, finds: Callable[[int], Awaitable[bool]]) -> Lag:
    while trio.current_time() - began < MOST_SECONDS:
        await trio.sleep(STEP)
        if await finds(number):
            return Lag(0, trio.current_time() - began)
    return Lag(None, None)
