"""What an agent author writes against.

    class Parrot(BaseAgent):
        async def reply(self, message: Message) -> Reply:
            return Reply(message.text)

Register the class in the entry-point group `longspan.agents`, or name it `python:package.module:Parrot`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from longspan.simulator.agent import Agent
from longspan.simulator.errors import AgentError, InputError
from longspan.simulator.messages import Message, Reply, Usage
from longspan.simulator.sizes import Tokens

__all__ = ["Agent", "AgentError", "AgentOptions", "BaseAgent", "InputError", "Message", "Reply", "Tokens", "Usage"]


class AgentOptions(BaseModel):
    """An agent's options: subclass it as `Options` inside the agent, a pydantic field per option."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class BaseAgent(ABC):
    """An agent without memory of its own: only `reply` is left to write. Takes no target, unless `takes_target` says so."""

    takes_target: bool = False

    class Options(AgentOptions):
        """No options."""

    def __init__(self, target: str = "", options: AgentOptions | None = None) -> None:
        if target and not self.takes_target:
            raise InputError(f"{type(self).__name__.lower()} takes no model or target, got {target!r:.60}")
        self.target = target

    async def start(self) -> None:  # noqa: B027
        """Make ready, so that it is known what the agent can do: nothing to do."""

    async def close(self) -> None:  # noqa: B027
        """Let go of all that was there for the conversation, which is over: nothing to do."""

    @property
    def has_snapshots(self) -> bool:
        """Whether the class can both save and load: it has written methods of its own."""
        return type(self).save is not BaseAgent.save and type(self).load is not BaseAgent.load

    @property
    def models(self) -> Mapping[str, str] | None:
        """The models it pays for, by part ("agent", "embedder"), as PROVIDER/MODEL; empty where it costs nothing, None where
        nobody knows. With models it needs `worst_case(message)`: by part, the Usage that its reply may come to at most."""
        return None

    @abstractmethod
    async def reply(self, message: Message) -> Reply:
        """Answer `message`."""

    async def observe(self, message: Message, reply: str) -> None:  # noqa: B027
        """Take note of a turn it is told of: nothing to do."""

    async def reset(self) -> None:  # noqa: B027
        """Forget the conversation: nothing to do."""

    async def save(self, folder: Path) -> None:  # noqa: B027
        """Write what it needs to go on into `folder`: nothing to do."""

    async def load(self, folder: Path) -> None:  # noqa: B027
        """Become what was saved in `folder`: nothing to do."""
