"""Runs an async function over many items concurrently, and returns the results in order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

import trio

from longspan.simulator.base.errors import LongspanError

__all__ = ["gather"]

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_CONCURRENT: Final = 100
"""The most items to process concurrently. Rate limits of a provider are up to the agent."""


async def gather(
    function: Callable[[Item], Awaitable[Result]], items: Sequence[Item], on_progress: Callable[[int, int], None] | None = None
) -> list[Result]:
    """Call `function` with each item, and return the results in item order.

    `on_progress` is called after each result, with the number of results so far and the number of items. A LongspanError is raised only
    after all items have been tried, because the other calls may have been paid for.
    """
    results: dict[int, Result] = {}
    errors: list[LongspanError] = []
    limit = trio.CapacityLimiter(MAX_CONCURRENT)

    async def process(number: int, item: Item) -> None:
        async with limit:
            try:
                results[number] = await function(item)
            except LongspanError as error:
                errors.append(error)
            else:
                if on_progress is not None:
                    on_progress(len(results), len(items))

    async with trio.open_nursery() as nursery:
        for number, item in enumerate(items):
            nursery.start_soon(process, number, item)
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(items))]
