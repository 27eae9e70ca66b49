"""The chat model that the extra `local` installs, run in this process by llama.cpp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from longspan.agents.base import AgentOptions, Danger
from longspan.agents.models.chat import ChatAgent, ChatOptions
from longspan.agents.models.gguf.core import GgufCore
from longspan.agents.models.gguf.options import GgufOptions
from longspan.agents.models.weights import SMOLLM2, locate_weights

__all__ = ["LocalAgent", "LocalCore"]

NAME: Final = "local"


@final
class LocalCore(GgufCore):
    """SmolLM2-135M-Instruct, from a package. The constructor raises InputError if the package or llama.cpp is missing."""

    takes_target = False

    @classmethod
    def danger(cls, target: str, options: Mapping[str, str]) -> Danger | None:
        """Return its danger: the weights are known, but a chat template is an arbitrary file."""
        return "use" if "chat_template" in options else None

    def __init__(self, target: str = "", options: GgufOptions | None = None) -> None:
        super().__init__(str(locate_weights(SMOLLM2, NAME)), options, NAME)


@final
class LocalAgent(ChatAgent):
    """SmolLM2-135M-Instruct, a small chat model that the extra `local` installs."""

    takes_target = False

    class Options(ChatOptions, GgufOptions):
        """The options of the agent and the model."""

    @classmethod
    def at_once(cls, target: str, options: AgentOptions) -> int | None:
        """Return its core's limit of concurrent conversations."""
        return GgufCore.at_once(options) if isinstance(options, GgufOptions) else None

    @classmethod
    def danger(cls, target: str, options: Mapping[str, str]) -> Danger | None:
        """Return the danger of its core."""
        return LocalCore.danger(target, options)

    def __init__(self, target: str = "", options: AgentOptions | None = None) -> None:
        settings = options if isinstance(options, self.Options) else self.Options()
        super().__init__(LocalCore(target, settings), settings, target)
