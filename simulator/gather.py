"""The same for many items at once, with the outcomes in the items' order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

import trio

from longspan.simulator.errors import LongspanError

__all__ = ["gather"]

Item = TypeVar("Item")
Made = TypeVar("Made")

AT_ONCE: Final = 100
"""Items in hand at once. How many requests a provider gets at once is its agent's concern."""


async def gather(
    make: Callable[[Item], Awaitable[Made]], items: Sequence[Item], heard: Callable[[int, int], None] | None = None
) -> list[Made]:
    """What `make` makes of each item. `heard` is told after each how many are done, of how many.

    The first LongspanError of `make` is raised once all items were tried: what others were asked meanwhile is paid for.
    """
    made: dict[int, Made] = {}
    errors: list[LongspanError] = []
    limit = trio.CapacityLimiter(AT_ONCE)

    async def one(number: int, item: Item) -> None:
        async with limit:
            try:
                made[number] = await make(item)
            except LongspanError as error:
                errors.append(error)
            else:
                if heard is not None:
                    heard(len(made), len(items))

    async with trio.open_nursery() as nursery:
        for number, item in enumerate(items):
            nursery.start_soon(one, number, item)
    if errors:
        raise errors[0]
    return [made[number] for number in range(len(items))]
