"""What the engine asks of an agent. Agents are written against this too, by way of `longspan.agents.base`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final, Protocol, final, runtime_checkable

import trio

from longspan.simulator.errors import StoppedError
from longspan.simulator.messages import Message, Reply

__all__ = [
    "Absent",
    "Agent",
    "Completes",
    "Prompted",
    "close",
    "has_snapshots",
    "never_asked",
    "observes",
    "repeatable",
    "start",
    "will_be_asked",
]

_asked: Final = ContextVar("asked", default=True)


@contextmanager
def never_asked() -> Iterator[None]:
    """Agents made in here are made to be looked at: what only asking them takes, such as a key, may be missing."""
    token = _asked.set(False)
    try:
        yield
    finally:
        _asked.reset(token)


def will_be_asked() -> bool:
    """Whether an agent that is made now is made to be asked (see `never_asked`)."""
    return _asked.get()


LEAVING: Final = 20.0
"""Seconds that an agent has for letting go."""


@runtime_checkable
class Agent(Protocol):
    """Whoever holds a conversation with the simulator.

    Its calls never overlap. A `turn_id` that comes again is the same request again. Errors that end the conversation
    are raised as AgentError. Every call may be cancelled; the agent is then used no more, except to `reset` or `load`.
    """

    async def reply(self, message: Message) -> Reply:
        """Answer `message`."""
        ...

    async def observe(self, message: Message, reply: str) -> None:
        """Take note of a turn it is told of, not asked: the user sent `message` and `reply` is what it answered."""
        ...

    async def reset(self) -> None:
        """Forget the conversation, as if newly made."""
        ...

    async def save(self, folder: Path) -> None:
        """Write all it needs to go on later into `folder`, which exists and is empty."""
        ...

    async def load(self, folder: Path) -> None:
        """Become what was saved in `folder`. Raises AgentError for a snapshot it cannot read."""
        ...


@runtime_checkable
class Prompted(Agent, Protocol):
    """An agent that is told the ideal reply before it is asked. Only the kind `oracle` is ever treated as one."""

    def prompt(self, ideal: str) -> None:
        """The next reply is to be `ideal`."""
        ...


@runtime_checkable
class Completes(Protocol):
    """A model that completes prompts, each by itself: what a judge needs."""

    async def complete(self, prompt: str, *, schema: Mapping[str, Any] | None) -> Reply:
        """The answer to `prompt` alone, JSON where there is a JSON `schema`; no conversation is kept. Raises AgentError."""
        ...


@final
class Absent:
    """No agent at all: for playing a conversation again from its journal. Raises StoppedError where that ends."""

    has_snapshots = False

    async def reply(self, message: Message) -> Reply:
        raise StoppedError(f"the journal ends before turn {message.turn_id}; `longspan resume` goes on from there")

    async def observe(self, message: Message, reply: str) -> None:
        await self.reply(message)

    async def reset(self) -> None:
        """Nothing to forget."""

    async def save(self, folder: Path) -> None:
        """Nothing to save."""

    async def load(self, folder: Path) -> None:
        """Nothing to load."""


async def start(agent: Agent) -> None:
    """Have the agent make ready, where it has `start`: an agent in another process says only then what it can do."""
    if callable(ready := getattr(agent, "start", None)):
        await ready()


async def close(agent: Agent) -> None:
    """Have the agent let go of its process and the like, where it has `close`. Not cancelled, but not waited for for ever either."""
    if callable(over := getattr(agent, "close", None)):
        with trio.move_on_after(LEAVING, shield=True), suppress(Exception):
            await over()


def has_snapshots(agent: Agent) -> bool:
    """Whether `save` and `load` restore the agent. Where not, resuming shows it all turns again (`observe`)."""
    return bool(getattr(agent, "has_snapshots", True))


def observes(agent: Agent) -> bool:
    """Whether `observe` takes note of a turn at no cost. Where not, the agent is asked and its answer dropped."""
    return bool(getattr(agent, "observes", True))


def repeatable(agent: Agent) -> bool:
    """Whether a turn that it may have been given before a crash can be given again without harm."""
    return bool(getattr(agent, "repeatable", True))
