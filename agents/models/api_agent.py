"""The common base of agents that are a chat model behind a vendor's API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from longspan.agents.base import AgentOptions, Danger
from longspan.agents.models.api import ApiCore, ApiOptions
from longspan.agents.models.chat import ChatAgent, ChatOptions
from longspan.agents.models.server_checks import ServerChecks
from longspan.simulator.contract.findings import Examination

__all__ = ["ApiAgent"]


class ApiAgent(ChatAgent):
    """An agent that is a chat model of the class `core_class`."""

    core_class: ClassVar[type[ApiCore]]

    class Options(ApiOptions, ChatOptions):
        """The options of the agent and the model."""

    def __init__(self, target: str, options: AgentOptions | None = None) -> None:
        settings = options if isinstance(options, self.Options) else self.Options()
        super().__init__(self.core_class(target, settings), settings, target)

    @classmethod
    def danger(cls, target: str, options: Mapping[str, str]) -> Danger | None:
        """Return the danger of its core."""
        return cls.core_class.danger(target, options)

    @classmethod
    def from_environment(cls, target: str, options: AgentOptions) -> Mapping[str, str]:
        """Return the model's address, if the environment sets it."""
        return cls.core_class.from_environment(options) if isinstance(options, ApiOptions) else {}

    @classmethod
    def examination(cls, target: str, options: AgentOptions) -> Examination:
        """Return the checks of what the model's server supports."""
        settings = options if isinstance(options, cls.Options) else cls.Options()
        return ServerChecks(lambda: cls.core_class(target, settings), timestamps=settings.timestamps)
