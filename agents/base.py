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
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from longspan.simulator.base.errors import AgentError, InputError
from longspan.simulator.base.sizes import Tokens
from longspan.simulator.contract.agent import Agent, Danger
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


class AgentOptions(BaseModel):
    """An agent's options. Subclass it as `Options` inside the agent, with a pydantic field for each option."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class BaseAgent(ABC):
    """An agent without memory. A subclass only has to write `reply`. It takes no target unless `takes_target` is True."""

    takes_target: bool = False
    pinned: ClassVar[bool] = True
    """Whether the spec and longspan's version say what is tested. Like `danger`, it is asked of longspan's own classes only."""

    class Options(AgentOptions):
        """No options."""

    def __init__(self, target: str = "", options: AgentOptions | None = None) -> None:
        if target and not self.takes_target:
            raise InputError(f"{type(self).__name__.lower()} takes no model or target, got {target!r:.60}")
        self.target = target

    @classmethod
    def at_once(cls, target: str, options: AgentOptions) -> int | None:
        """Return how many conversations such agents hold at the same time in a process, None for any number."""
        return None

    @classmethod
    def danger(cls, target: str, options: Mapping[str, str]) -> Danger | None:
        """Return the worst that a stranger could have the agent do by its target and its options, None if nothing. The default is to run
        code.

        Addresses among them need not be found: `trust` looks for them itself. Only longspan's own classes are asked, since asking imports
        the class.
        """
        return "run"

    @classmethod
    def from_environment(cls, target: str, options: AgentOptions) -> Mapping[str, str]:
        """Return the options that the environment sets where the spec does not, such as a model's address. A run's manifest names
        them."""
        return {}

    async def start(self) -> None:  # noqa: B027
        """Get ready, so that the agent's abilities are known. The default does nothing."""

    async def close(self) -> None:  # noqa: B027
        """Release the resources that the finished conversation held. The default does nothing."""

    @property
    def has_snapshots(self) -> bool:
        """Whether the class overrides both `save` and `load`."""
        return type(self).save is not BaseAgent.save and type(self).load is not BaseAgent.load

    @property
    def models(self) -> Mapping[str, str | Rates] | None:
        """The models that cost money, as PROVIDER/MODEL by role ("agent", "embedder"): empty if it costs nothing, None if unknown.

        An agent with models has `worst_case(message)`, which returns the maximum Usage of its reply by role, so that a limit is never
        exceeded. Without it, the next reply is assumed to take as much as the one that took most so far.
        """
        return None

    @abstractmethod
    async def reply(self, message: Message) -> Reply:
        """Answer `message`."""

    async def observe(self, message: Message, reply: str) -> Reply | None:  # noqa: B027
        """Note a turn that took place without the agent being asked. Return what that took, None for nothing. The default does nothing."""

    async def reset(self) -> None:  # noqa: B027
        """Forget the conversation. The default does nothing."""

    async def save(self, folder: Path) -> None:  # noqa: B027
        """Write everything it needs to continue into `folder`. The default does nothing."""

    async def load(self, folder: Path) -> None:  # noqa: B027
        """Restore the state saved in `folder`. The default does nothing."""


class MemorylessAgent(BaseAgent):
    """An agent that no turn changes: being asked leaves no trace."""

    async def mark(self) -> None:
        """Do nothing."""

    async def rewind(self) -> None:
        """Do nothing."""
