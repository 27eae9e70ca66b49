"""The interface between the engine and an agent. Agents implement it through `longspan.agents.base`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeGuard, final, get_args, runtime_checkable

import trio

from longspan.simulator.base.closing import report_failure
from longspan.simulator.base.errors import AgentError, LongspanError, one_line
from longspan.simulator.contract.messages import Message, Reply
from longspan.simulator.files.folders import below

__all__ = [
    "Agent",
    "CompletionModel",
    "ConsolidatingAgent",
    "Danger",
    "IdealReplyAgent",
    "NoAgent",
    "Pace",
    "close",
    "consolidates",
    "has_partial_models",
    "has_snapshots",
    "lacking",
    "never_asked",
    "observes",
    "pays_to_observe",
    "repeatable",
    "replay",
    "rewinds",
    "saved_size",
    "settle",
    "size_of",
    "start",
    "unreported",
    "will_be_asked",
    "worst",
]

Danger = Literal["run", "call", "send", "use"]
"""The ways that a stranger's agent spec can do harm, worst first.

`run` code, `call` an address, `send` something, or `use` a file or a model. `send`: with the user's keys or at the user's expense, without
the user's choice.
"""


class Pace(NamedTuple):
    """The speed of a model on this machine in tokens per second, and the maximum tokens of an answer. An agent with such a model measures
    it in a coroutine `pace`."""

    reading: float
    writing: float
    longest: int


_asked: Final = ContextVar("asked", default=True)


@contextmanager
def never_asked() -> Iterator[None]:
    """Make agents only to inspect them. Anything required only to reply, such as an API key, may be missing."""
    token = _asked.set(False)
    try:
        yield
    finally:
        _asked.reset(token)


def will_be_asked() -> bool:
    """Return whether agents are made to reply (True) or only to be inspected (see `never_asked`)."""
    return _asked.get()


CLOSE_TIMEOUT: Final = 20.0
"""The seconds that an agent may take to release its resources."""


@runtime_checkable
class Agent(Protocol):
    """An agent that converses with the simulator.

    Calls never overlap. A repeated `turn_id` means a repeated request. Errors that end the conversation are raised as AgentError. Every
    call may be cancelled; after that, only `reset` or `load` is called.
    """

    async def reply(self, message: Message) -> Reply:
        """Answer `message`."""
        ...

    async def observe(self, message: Message, reply: str) -> Reply | None:
        """Add a turn to the agent's history without asking it: the user sent `message` and the agent answered `reply`.

        Return a Reply with the cost and usage (its text is ignored), or None if it cost nothing.
        """
        ...

    async def reset(self) -> None:
        """Forget the conversation and return to the initial state."""
        ...

    async def save(self, folder: Path) -> None:
        """Write the agent's state to `folder`, which exists and is empty."""
        ...

    async def load(self, folder: Path) -> None:
        """Restore the state saved in `folder`. Raises AgentError if it cannot be read."""
        ...


@runtime_checkable
class IdealReplyAgent(Agent, Protocol):
    """An agent that is given the ideal reply before each message. Only the kind `oracle` is treated as one."""

    def prompt(self, ideal: str) -> None:
        """Set the ideal reply to the next message."""
        ...


@runtime_checkable
class RewindingAgent(Agent, Protocol):
    """An agent that can be asked a question and leave no trace of it."""

    async def mark(self) -> None:
        """Remember the present state, and forget any state marked before."""
        ...

    async def rewind(self) -> None:
        """Return to the marked state, which stays marked."""
        ...


@runtime_checkable
class ConsolidatingAgent(Agent, Protocol):
    """An agent that can consolidate its memory in virtual nights."""

    async def consolidate(self, at: datetime) -> Reply | None:
        """Consolidate the memory in a night that ends at the virtual time `at`. Return a Reply with the cost and usage; its text is
        ignored."""
        ...


@runtime_checkable
class CompletionModel(Protocol):
    """A model that answers single prompts and keeps no conversation, as judges require."""

    async def complete(self, prompt: str, *, schema: Mapping[str, Any] | None) -> Reply:
        """Answer `prompt`, with JSON if a JSON `schema` is given. Raises AgentError."""
        ...


@final
class NoAgent:
    """A placeholder for replaying a conversation from its journal. It is never asked."""

    has_snapshots = False

    async def reply(self, message: Message) -> Reply:
        raise AgentError("a replay asks no agent")

    async def observe(self, message: Message, reply: str) -> Reply | None:
        return await self.reply(message)

    async def reset(self) -> None:
        """Do nothing."""

    async def save(self, folder: Path) -> None:
        """Do nothing."""

    async def load(self, folder: Path) -> None:
        """Do nothing."""


def worst(*dangers: Danger | None) -> Danger | None:
    """Return the worst of several dangers; None without any."""
    return min((danger for danger in dangers if danger is not None), key=get_args(Danger).index, default=None)


async def start(agent: Agent) -> None:
    """Call the agent's `start` if it has one. An agent in another process reports its capabilities only after starting."""
    if callable(start_agent := getattr(agent, "start", None)):
        await start_agent()


async def replay(agent: Agent, message: Message, reply: Reply) -> Reply | None:
    """Show the agent a turn that it answered before an interruption and that its snapshot lacks.

    Call the agent's `replay(message, reply)` if it has one. It receives the reply's trace as well, so that it can repeat changes that the
    reply made elsewhere. Otherwise call `observe`. Return the cost and usage, as `observe` does.
    """
    again: Callable[[Message, Reply], Awaitable[Reply | None]] | None = getattr(agent, "replay", None)
    return await (again(message, reply) if callable(again) else agent.observe(message, reply.text))


async def settle(agent: Agent) -> Reply | None:
    """Let the agent finish adding the conversation to its memory, where it can then be found. Return the cost and usage, as `observe`
    does."""
    finish: Callable[[], Awaitable[Reply | None]] | None = getattr(agent, "settle", None)
    return await finish() if callable(finish) else None


def has_partial_models(agent: Agent) -> bool:
    """Return whether the agent may pay for models that its `models` does not list, and reports their cost."""
    return bool(getattr(agent, "has_partial_models", False))


def unreported(agent: Agent) -> Reply | None:
    """Return the cost and usage of a failed call, from the agent's `unreported()`; None if it has no such method."""
    account: Callable[[], Reply] | None = getattr(agent, "unreported", None)
    return account() if callable(account) else None


async def close(agent: Agent) -> None:
    """Call the agent's `close` if it has one. The call cannot be cancelled, but is abandoned after CLOSE_TIMEOUT seconds.

    A failure is reported instead of raised: the conversation is complete.
    """
    if not callable(close_agent := getattr(agent, "close", None)):
        return
    with trio.move_on_after(CLOSE_TIMEOUT, shield=True) as limit:
        try:
            await close_agent()
        except Exception as error:
            report_failure(str(error) if isinstance(error, LongspanError) else f"{type(agent).__name__}: close raised {one_line(error)}")
    if limit.cancelled_caught:
        report_failure(f"{type(agent).__name__}: close did not return within {CLOSE_TIMEOUT:g} s")


def has_snapshots(agent: Agent) -> bool:
    """Return whether `save` and `load` restore the agent. If not, resuming shows it all turns again (`observe`)."""
    return bool(getattr(agent, "has_snapshots", True))


async def size_of(agent: Agent) -> int | None:
    """Return the size of the agent's memory in bytes: the result of its `size` if it has one, otherwise the size of a snapshot. None if it
    has neither."""
    if callable(size := getattr(agent, "size", None)):
        told: int | None = await size()
        return told
    return await saved_size(agent.save) if has_snapshots(agent) else None


async def saved_size(save: Callable[[Path], Awaitable[None]]) -> int:
    """Save to a temporary folder, and return the size of its files in bytes."""
    with TemporaryDirectory(prefix="longspan-") as folder:
        await save(Path(folder))
        return sum(path.lstat().st_size for path in below(Path(folder)) if not path.is_dir())


def observes(agent: Agent) -> bool:
    """Return whether `observe` records a turn without a reply. If not, the agent is asked and its answer is dropped."""
    return bool(getattr(agent, "observes", True))


def pays_to_observe(agent: Agent) -> bool:
    """Return whether `observe` may cost money: a reply costs money even if it is dropped, and so may adding a turn to a memory."""
    return not observes(agent) or bool(getattr(agent, "pays_to_observe", False))


def rewinds(agent: Agent) -> TypeGuard[RewindingAgent]:
    """Return whether the agent can go back to the state before a question, so that it need not be loaded again for each one."""
    return isinstance(agent, RewindingAgent) and bool(getattr(agent, "rewinds", True))


def lacking(agent: Agent) -> str:
    """Describe the abilities that an agent lacks if it can be neither loaded again nor rewound. Its attribute `lacks`, if any, takes
    precedence."""
    return str(getattr(agent, "lacks", "neither save and load nor mark and rewind"))


def consolidates(agent: Agent) -> TypeGuard[ConsolidatingAgent]:
    """Return whether the agent consolidates its memory at night."""
    return isinstance(agent, ConsolidatingAgent) and bool(getattr(agent, "consolidates", True))


def repeatable(agent: Agent) -> bool:
    """Return whether a turn that the agent may already have received before a crash can safely be sent again."""
    return bool(getattr(agent, "repeatable", True))
