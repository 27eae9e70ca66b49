"""Agents that are objects of the calling Python program. During its runs, the agent kind `given` looks them up here by name."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, final

__all__ = ["KIND", "GivenObject", "find_agent", "register_agents"]

KIND: Final = "given"
"""The agent kind in specs, as in `given:mybot`."""


@final
@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class GivenObject:
    """An agent from the calling program. `make` returns its object or function.

    `shared`: `make` returns the same object each time, so conversations must run one after another. `loop` is the program's asyncio loop,
    if the program awaits the runs there. `under_trio`: the program awaits the runs under Trio.
    """

    make: Callable[[], Any]
    shared: bool
    loop: AbstractEventLoop | None = None
    under_trio: bool = False


_held: Final[ContextVar[Mapping[str, GivenObject] | None]] = ContextVar("given", default=None)


@contextmanager
def register_agents(given: Mapping[str, GivenObject]) -> Iterator[None]:
    """Make these agents available by name in this context, and in threads and tasks started from it."""
    token = _held.set(given)
    try:
        yield
    finally:
        _held.reset(token)


def find_agent(name: str) -> GivenObject | None:
    """Return the agent with this name, or None."""
    return (_held.get() or {}).get(name)
