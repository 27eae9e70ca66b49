"""Results of an agent's checks, and the interface for checks of a certain kind of agent.

If a kind's class has `examination(target, options)`, `longspan check` runs its checks, and so does a new run before it starts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, NamedTuple, Protocol

__all__ = ["Check", "Examination", "Finding"]


class Finding(NamedTuple):
    """The result of a check. "bad": a long run would fail, or its result would be meaningless. "note": good to know beforehand."""

    check: str
    verdict: Literal["good", "note", "bad"]
    what: str


class Check(NamedTuple):
    """A named check. It returns None if it has nothing to report. With `at_door`, a bad finding prevents a new run from starting."""

    name: str
    find: Callable[[], Awaitable[Finding | None]]
    at_door: bool = False


class Examination(Protocol):
    """The checks of one agent. They run in order, because earlier checks prepare later ones."""

    checks: Sequence[Check]

    async def close(self) -> None:
        """Release all resources."""
        ...
