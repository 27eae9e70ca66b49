"""gguf/PATH: a chat model in this process as an agent."""

from __future__ import annotations

from typing import final

from longspan.agents.base import AgentOptions
from longspan.agents.models.chat import ChatAgent, ChatOptions
from longspan.agents.models.gguf.core import GgufCore, GgufOptions

__all__ = ["GgufAgent"]


@final
class GgufAgent(ChatAgent):
    """A chat model from a GGUF file as an agent."""

    class Options(ChatOptions, GgufOptions):
        """The agent's and the model's."""

    def __init__(self, target: str, options: AgentOptions | None = None) -> None:
        settings = options if isinstance(options, self.Options) else self.Options()
        super().__init__(GgufCore(target, settings), settings, target)
