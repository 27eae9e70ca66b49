"""Results of an agent's checks, and the interface of checks that belong to a kind of agent.

If a kind's class has `examination(target, options)`, `longspan check` runs these checks, and so does a new run before it starts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, NamedTuple, Protocol

__all__ = ["Check", "Examination", "Finding"]


class Finding(NamedTuple):
    """The result of a check. "bad": a long run would fail, or mean nothing. "note": worth knowing beforehand."""

    check: str
    verdict: Literal["good", "note", "bad"]
    what: str


class Check(NamedTuple):
    """A named check. It returns None if it has nothing to report. With `at_door`, a bad finding stops a new run from starting."""

    name: str
    find: Callable[[], Awaitable[Finding | None]]
    at_door: bool = False


class Examination(Protocol):
    """The checks of one agent. They run in order, since earlier ones prepare later ones."""

    checks: Sequence[Check]

    async def close(self) -> None:
        """Release all resources."""
        ...
