"""What checks find out about an agent, and the checks that only a kind of agent can make of its own agents.

A kind whose class has `examination(target, options)` is examined by `longspan check`, and at the door: before a new run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, NamedTuple, Protocol

from longspan.simulator.contract.messages import Reply

__all__ = ["Check", "Examination", "Finding"]


class Finding(NamedTuple):
    """The result of a check. "bad" means that a long run would fail, or mean nothing; "note" is worth knowing beforehand."""

    check: str
    verdict: Literal["good", "note", "bad"]
    what: str


class Check(NamedTuple):
    """A check by name. It returns None if there is nothing to find out. `at_door`: a new run is not begun if it finds something bad."""

    name: str
    find: Callable[[], Awaitable[Finding | None]]
    at_door: bool = False


class Examination(Protocol):
    """The checks of one agent, which are made in their order. The first ones prepare those after them."""

    checks: Sequence[Check]

    def took(self) -> Reply:
        """Return what the checks made so far have taken, in usage and cost."""
        ...

    async def close(self) -> None:
        """Release all resources."""
        ...
