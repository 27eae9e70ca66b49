"""Agents that are objects of the Python program that plays runs. While the runs are played, the kind `given` finds them here by name."""

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
    """An agent given by a program: `make` returns the object or the function.

    `shared` means that it is the same object each time, and holds one conversation after another. `loop` is the program's own asyncio loop,
    if the program awaits the runs there. `under_trio` means that the program awaits the runs under Trio.
    """

    make: Callable[[], Any]
    shared: bool
    loop: AbstractEventLoop | None = None
    under_trio: bool = False


_held: Final[ContextVar[Mapping[str, Given] | None]] = ContextVar("given", default=None)


@contextmanager
def holding(given: Mapping[str, Given]) -> Iterator[None]:
    """Let these agents be found by name in this context, and in threads and tasks started within it."""
    token = _held.set(given)
    try:
        yield
    finally:
        _held.reset(token)


def find(name: str) -> Given | None:
    """Return the agent given under this name, or None."""
    return (_held.get() or {}).get(name)
