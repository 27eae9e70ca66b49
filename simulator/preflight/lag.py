"""How long after it was told a fact can be found: some memories write in the background, or only when enough has been said."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, final

import trio

__all__ = ["Lag", "measure_lag"]

MOST_TURNS: Final = 12
"""Turns after which waiting by turns is given up."""

MOST_SECONDS: Final = 5.0
"""Seconds after which waiting is given up."""

STEP: Final = 1 / 16
"""Seconds between two searches."""


@final
class Lag(NamedTuple):
    """A fact is found once so many turns have followed it, or after so many seconds. Both are None if it was not found at all."""

    turns: int | None
    seconds: float | None


async def measure_lag(tell: Callable[[int], Awaitable[None]], finds: Callable[[int], Awaitable[bool]]) -> Lag:
    """Return the lag of an agent. `tell` tells it the fact of a number; `finds` asks for that, which is a turn, and says if it is found.

    Whether it is turns or seconds that a fact takes is found out by telling another and waiting without a word.
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
