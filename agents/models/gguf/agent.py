"""An agent that is a chat model from a GGUF file, run in this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from longspan.agents.base import AgentOptions, Danger
from longspan.agents.models.chat import ChatAgent, ChatOptions
from longspan.agents.models.gguf.core import GgufCore
from longspan.agents.models.gguf.options import GgufOptions

__all__ = ["GgufAgent"]


@final
class GgufAgent(ChatAgent):
    """An agent that is a chat model from a GGUF file."""

    class Options(ChatOptions, GgufOptions):
        """The options of the agent and the model."""

    @classmethod
    def at_once(cls, target: str, options: AgentOptions) -> int | None:
        """Return its core's limit of concurrent conversations."""
        return GgufCore.at_once(options) if isinstance(options, GgufOptions) else None

    @classmethod
    def danger(cls, target: str, options: Mapping[str, str]) -> Danger | None:
        """Return the danger of its core."""
        return GgufCore.danger(target, options)

    def __init__(self, target: str, options: AgentOptions | None = None) -> None:
        settings = options if isinstance(options, self.Options) else self.Options()
        self._gguf = GgufCore(target, settings)
        super().__init__(self._gguf, settings, target)

    async def close(self) -> None:
        """Give its caches to the next conversation, which would otherwise evict those of one that goes on."""
        self._gguf.release()
