"""The interface between the engine and an agent. Agents implement it by deriving from `longspan.agents.base`."""

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
from longspan.simulator.base.files.folders import walk_folder
from longspan.simulator.contract.messages import Message, Reply

__all__ = [
    "Agent",
    "CompletionModel",
    "ConsolidatingAgent",
    "Danger",
    "IdealReplyAgent",
    "NoAgent",
    "Pace",
    "can_consolidate",
    "can_observe",
    "can_rejoin",
    "can_repeat_turn",
    "can_rewind",
    "close_agent",
    "describe_missing_abilities",
    "has_partial_models",
    "has_snapshots",
    "is_bound_to_its_thread",
    "measure_snapshot",
    "never_asked",
    "pays_to_observe",
    "replay_turn",
    "settle_agent",
    "size_of",
    "start_agent",
    "take_unreported",
    "will_be_asked",
    "worst_danger",
]

Danger = Literal["run", "call", "send", "use"]
"""The ways that an untrusted agent spec can do harm, worst first.

It may `run` code, `call` an address, `send` a request, or `use` a file or a model. `send` means a request with the user's keys or at the
user's expense that the user did not choose.
"""


class Pace(NamedTuple):
    """The speed of a model on this machine in tokens per second, and the most tokens of an answer.

    An agent with such a model measures it in a coroutine `pace`.
    """

    reading: float
    writing: float
    longest: int


_asked: Final = ContextVar("asked", default=True)


@contextmanager
def never_asked() -> Iterator[None]:
    """Create agents only to inspect them. Anything that only a reply needs, such as an API key, may be missing."""
    token = _asked.set(False)
    try:
        yield
    finally:
        _asked.reset(token)


def will_be_asked() -> bool:
    """Return whether agents are created to reply, or only to be inspected (see `never_asked`)."""
    return _asked.get()


CLOSE_TIMEOUT: Final = 20.0
"""The most seconds that an agent may take to release its resources."""


@runtime_checkable
class Agent(Protocol):
    """An agent that converses with the simulator.

    Calls never overlap. A repeated `turn_id` means that the same request is repeated. Raise AgentError for an error that ends the
    conversation. Every call may be cancelled; after that, only `reset` or `load` is called.
    """

    async def reply(self, message: Message) -> Reply:
        """Answer `message`."""
        ...

    async def observe(self, message: Message, reply: str) -> Reply | None:
        """Add a turn to the agent's history without asking the agent: the user sent `message`, and the agent answered `reply`.

        Return a Reply with cost and usage (its text is ignored), or None if there was no cost.
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
    """An agent that receives the ideal reply before each message. Only the kind `oracle` is treated as one."""

    def prompt(self, ideal: str) -> None:
        """Set the ideal reply to the next message."""
        ...


@runtime_checkable
class RewindingAgent(Agent, Protocol):
    """An agent that can answer a question and then return to its state before it."""

    async def mark(self) -> None:
        """Mark the current state, replacing any earlier mark."""
        ...

    async def rewind(self) -> None:
        """Return to the marked state, which stays marked."""
        ...


@runtime_checkable
class RejoiningAgent(Agent, Protocol):
    """An agent whose conversation is kept by a server, which outlives an interruption."""

    async def rejoin(self, message: Message, reply: Reply) -> bool:
        """Continue the conversation after a turn that the agent answered. Return whether the reply's trace names the server's state then.

        If it does, the server has all turns up to this one.
        """
        ...


@runtime_checkable
class ConsolidatingAgent(Agent, Protocol):
    """An agent that can consolidate its memory in virtual nights."""

    async def consolidate(self, at: datetime) -> Reply | None:
        """Consolidate the memory in a night that ends at the virtual time `at`. Return a Reply with cost and usage; its text is ignored."""
        ...


@runtime_checkable
class CompletionModel(Protocol):
    """A model that answers single prompts and keeps no conversation. Judges need one."""

    async def complete(self, prompt: str, *, schema: Mapping[str, Any] | None) -> Reply:
        """Answer `prompt`, as JSON if a JSON `schema` is given. Raises AgentError."""
        ...


@final
class NoAgent:
    """A placeholder for replaying a conversation from its journal. It cannot reply."""

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


def worst_danger(*dangers: Danger | None) -> Danger | None:
    """Return the worst of several dangers. Without any, return None."""
    return min((danger for danger in dangers if danger is not None), key=get_args(Danger).index, default=None)


async def start_agent(agent: Agent) -> None:
    """Call the agent's `start` if it has one. An agent in another process reports its capabilities only after that."""
    if callable(start_agent := getattr(agent, "start", None)):
        await start_agent()


async def replay_turn(agent: Agent, message: Message, reply: Reply) -> Reply | None:
    """Repeat a turn for an agent that answered it before an interruption but lacks it in its snapshot.

    Calls the agent's `replay(message, reply)` if it has one. Its reply includes the trace, so the agent can repeat changes that it
    made elsewhere. Otherwise calls `observe`. Returns cost and usage, as `observe` does.
    """
    again: Callable[[Message, Reply], Awaitable[Reply | None]] | None = getattr(agent, "replay", None)
    return await (again(message, reply) if callable(again) else agent.observe(message, reply.text))


async def settle_agent(agent: Agent) -> Reply | None:
    """Wait until the agent has added the whole conversation to its memory and can retrieve it. Return cost and usage, as `observe` does."""
    finish: Callable[[], Awaitable[Reply | None]] | None = getattr(agent, "settle", None)
    return await finish() if callable(finish) else None


def has_partial_models(agent: Agent) -> bool:
    """Return whether the agent may pay for models that its `models` does not list, and reports their cost."""
    return bool(getattr(agent, "has_partial_models", False))


def take_unreported(agent: Agent) -> Reply | None:
    """Return the cost and usage of a failed call, from the agent's `unreported()`, or None if it has no such method."""
    account: Callable[[], Reply] | None = getattr(agent, "unreported", None)
    return account() if callable(account) else None


async def close_agent(agent: Agent) -> None:
    """Call the agent's `close` if it has one. The call cannot be cancelled, but is abandoned after CLOSE_TIMEOUT seconds.

    A failure is reported, not raised: the conversation is complete.
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
    """Return whether `save` and `load` restore the agent. If not, resuming repeats all turns with `observe`."""
    return bool(getattr(agent, "has_snapshots", True))


async def size_of(agent: Agent) -> int | None:
    """Return the size of the agent's memory in bytes: the result of its `size`, or else the size of a snapshot. None if it has neither."""
    if callable(size := getattr(agent, "size", None)):
        told: int | None = await size()
        return told
    return await measure_snapshot(agent.save) if has_snapshots(agent) else None


async def measure_snapshot(save: Callable[[Path], Awaitable[None]]) -> int:
    """Save to a temporary folder, and return the size of its files in bytes."""
    with TemporaryDirectory(prefix="longspan-") as folder:
        await save(Path(folder))
        return sum(path.lstat().st_size for path in walk_folder(Path(folder)) if not path.is_dir())


def can_observe(agent: Agent) -> bool:
    """Return whether `observe` records a turn without a reply. If not, the agent is asked and its answer is dropped."""
    return bool(getattr(agent, "observes", True))


def pays_to_observe(agent: Agent) -> bool:
    """Return whether `observe` may cost money. A dropped reply does, and adding a turn to a memory may."""
    return not can_observe(agent) or bool(getattr(agent, "pays_to_observe", False))


def can_rewind(agent: Agent) -> TypeGuard[RewindingAgent]:
    """Return whether the agent can return to the state before a question, so that it need not be loaded again for each question."""
    return isinstance(agent, RewindingAgent) and bool(getattr(agent, "rewinds", True))


def describe_missing_abilities(agent: Agent) -> str:
    """Describe what an agent lacks that can be neither loaded again nor rewound: its attribute `lacks`, or a default text."""
    return str(getattr(agent, "lacks", "neither save and load nor mark and rewind"))


def can_consolidate(agent: Agent) -> TypeGuard[ConsolidatingAgent]:
    """Return whether the agent consolidates its memory at night."""
    return isinstance(agent, ConsolidatingAgent) and bool(getattr(agent, "consolidates", True))


def is_bound_to_its_thread(agent: Agent) -> bool:
    """Return whether an agent has to be used in the thread in which it was made. One that has a thread of its own has not."""
    return getattr(agent, "thread", None) is None


def can_rejoin(agent: Agent) -> TypeGuard[RejoiningAgent]:
    """Return whether the agent can continue an interrupted conversation on its server, without being shown its turns again."""
    return isinstance(agent, RejoiningAgent) and bool(getattr(agent, "rejoins", True))


def can_repeat_turn(agent: Agent) -> bool:
    """Return whether it is safe to send a turn again that the agent may have received before a crash."""
    return bool(getattr(agent, "repeatable", True))
