"""Measures how long a fact takes to become retrievable. Some memories write in the background, or in batches of turns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, final

import trio

__all__ = ["Lag", "measure_lag"]

MOST_TURNS: Final = 12
"""The number of turns after which waiting by turns gives up."""

MOST_SECONDS: Final = 5.0
"""The number of seconds after which waiting gives up."""

STEP: Final = 1 / 16
"""The number of seconds between searches."""


@final
class Lag(NamedTuple):
    """The turns, or the seconds, until a fact is retrievable. Both are None if it never was."""

    turns: int | None
    seconds: float | None


async def measure_lag(tell: Callable[[int], Awaitable[None]], finds: Callable[[int], Awaitable[bool]]) -> Lag:
    """Return the lag of an agent.

    `tell` states the numbered fact. `finds` asks for it, which takes a turn, and returns whether it was found.

    Turns take time too. So if the first fact took some turns, a second one is stated and asked for after the same time without any turns
    in between. If it is found, the lag is a matter of seconds, otherwise of turns.
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
