"""Rate limits that several processes share."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from typing import Any, Final, Protocol

__all__ = ["GATE", "Gate"]


class Gate(Protocol):
    """Lets requests through for all processes that ask it."""

    def through(self, key: tuple[str, ...], limiter: type, limits: tuple[float, ...], slot: Any) -> AbstractAsyncContextManager[None]:
        """Wait until the limiter `key` lets a request through, which is made inside the block. `limiter` is its class, `limits`
        what its `restrict` takes, and `slot` says before what is asked for, and afterwards how it went."""
        ...


GATE: Final[ContextVar[Gate | None]] = ContextVar("GATE", default=None)
"""The gate of what is played here; None where this process alone keeps to the limits."""
