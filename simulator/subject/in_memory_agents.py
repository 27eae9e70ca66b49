"""Agents that are objects of the Python program that plays runs: the kind `given` finds them here by name, while the runs are played."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, final

__all__ = ["KIND", "Given", "find", "holding"]

KIND: Final = "given"
"""The kind of agent in specs, as in `given:mybot`."""


@final
@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Given:
    """An agent that a program has given: `make` returns the object or the function.

    `shared`: it is the same one each time, and holds one conversation after another. `loop`: the program's own asyncio loop, if it
    awaits the runs there. `under_trio`: the program awaits the runs under Trio.
    """

    make: Callable[[], Any]
    shared: bool
    loop: AbstractEventLoop | None = None
    under_trio: bool = False


_held: Final[ContextVar[Mapping[str, Given] | None]] = ContextVar("given", default=None)


@contextmanager
def holding(given: Mapping[str, Given]) -> Iterator[None]:
    """Let agents be found by name in this context, and in threads and tasks that are started in it."""
    token = _held.set(given)
    try:
        yield
    finally:
        _held.reset(token)


def find(name: str) -> Given | None:
    """Return what was given under a name, or None."""
    return (_held.get() or {}).get(name)
