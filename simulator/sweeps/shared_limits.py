"""Rate limits that several processes share."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from typing import Any, Final, Protocol

__all__ = ["SHARED_LIMITS", "SharedLimits"]


class SharedLimits(Protocol):
    """Admits the requests of all processes of a sweep."""

    def admit(self, key: tuple[str, ...], limiter: type, limits: tuple[float, ...], slot: Any) -> AbstractAsyncContextManager[None]:
        """Wait until the limiter `key` admits a request, which is made inside the block.

        `limiter` is the limiter's class. `limits` are the arguments of its `restrict`. `slot` describes the request beforehand and
        its outcome afterwards.
        """
        ...


SHARED_LIMITS: Final[ContextVar[SharedLimits | None]] = ContextVar("SHARED_LIMITS", default=None)
"""The limits shared with other processes; None where this process has limits of its own."""
