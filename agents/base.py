"""The API for writing agents.

    class Parrot(BaseAgent):
        async def reply(self, message: Message) -> Reply:
            return Reply(message.text)

Register the class in the entry-point group `longspan.agents`, or name it `python:package.module:Parrot`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from longspan.simulator.base.errors import AgentError, InputError
from longspan.simulator.base.sizes import Tokens
from longspan.simulator.contract.agent import Agent, Danger
from longspan.simulator.contract.agent_kind import AgentKind, AgentOptions
from longspan.simulator.contract.messages import Message, Reply, Usage
from longspan.simulator.subject.ledger import Rates

__all__ = [
    "Agent",
    "AgentError",
    "AgentOptions",
    "BaseAgent",
    "Danger",
    "InputError",
    "MemorylessAgent",
    "Message",
    "Reply",
    "Tokens",
    "Usage",
]


class BaseAgent(AgentKind, ABC):
    """An agent without memory. A subclass must define `reply`. It takes no target unless `takes_target` is True."""

    takes_target: bool = False

    def __init__(self, target: str = "", options: AgentOptions | None = None) -> None:
        if target and not self.takes_target:
            raise InputError(f"{type(self).__name__.lower()} takes no model or target, got {target!r:.60}")
        self.target = target

    async def start(self) -> None:
        """Prepare for use, so that the agent's abilities are known. The default does nothing."""

    async def close(self) -> None:
        """Release the finished conversation's resources. The default does nothing."""

    @property
    def has_snapshots(self) -> bool:
        """Whether the class overrides both `save` and `load`."""
        return type(self).save is not BaseAgent.save and type(self).load is not BaseAgent.load

    @property
    def models(self) -> Mapping[str, str | Rates] | None:
        """The models that cost money, as PROVIDER/MODEL by role ("agent", "embedder"): empty if it costs nothing, None if unknown.

        An agent with models should define `worst_case(message)`, which returns the maximum Usage of a reply by role, so that limits are
        never exceeded. Without it, the next reply is assumed to use as much as the most expensive one so far.
        """
        return None

    @abstractmethod
    async def reply(self, message: Message) -> Reply:
        """Answer `message`."""

    async def observe(self, message: Message, reply: str) -> Reply | None:
        """Record a turn that the agent was not asked to answer. Return its usage, None for nothing. The default does nothing."""

    async def reset(self) -> None:
        """Forget the conversation. The default does nothing."""

    async def save(self, folder: Path) -> None:
        """Write the state needed to continue into `folder`. The default does nothing."""

    async def load(self, folder: Path) -> None:
        """Restore the state saved in `folder`. The default does nothing."""


class MemorylessAgent(BaseAgent):
    """An agent that turns do not change."""

    async def mark(self) -> None:
        """Do nothing."""

    async def rewind(self) -> None:
        """Do nothing."""
