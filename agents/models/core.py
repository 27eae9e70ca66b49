"""A core: a chat model, asked with a list of messages. What agents that think with a model (chat, ltm) and judges build on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from longspan.agents.base import AgentError, AgentOptions, Usage
from longspan.simulator.plugins import load

__all__ = ["CORES", "ChatMessage", "Completion", "ContextOverflowError", "Core", "CoreOptions", "clean", "core_class"]

CORES = "longspan.cores"
"""The entry-point group of cores: openai, anthropic, google, gguf. Each is a class with nested `Options(CoreOptions)`,
made with its target (a model's name or path) and its options."""


class ChatMessage(NamedTuple):
    """A message as chat models take them. Its text is valid Unicode: see `clean`."""

    role: Literal["system", "user", "assistant"]
    text: str


class Completion(NamedTuple):
    """What a core answered, and what it cost."""

    text: str
    usage: Usage


class ContextOverflowError(AgentError):
    """The model takes no prompt of this length. Whoever asked may ask again with less."""


class CoreOptions(AgentOptions):
    """A core's options; subclassed by each."""


class Core(Protocol):
    """A chat model. Calls may overlap only where the core says so; every call may be cancelled."""

    name: str
    """The spec that names it without its options, such as "openai/gpt-4o": for errors and for prices."""
    overhead: int
    """Tokens that a message takes beyond those of its text."""
    window: int | None
    """Tokens that the model takes at most, prompt and answer together, where that is known."""
    most_output: int
    """Tokens that an answer may have at most: what `complete` asks for unless told otherwise."""

    def count(self, text: str) -> int:
        """Tokens of a text, by the model's own tokenizer where it is at hand."""
        ...

    async def complete(
        self, messages: Sequence[ChatMessage], *, most: int | None = None, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """The model's answer to a conversation, of at most `most` tokens; JSON where a JSON `schema` is given.

        `messages` are an optional system message, then user and assistant in turn, ending with the user. Raises AgentError
        where the model cannot be reached, refuses or answers nothing that can be read; ContextOverflowError where the prompt
        is too long for it.
        """
        ...


def core_class(kind: str) -> Any:
    """The core registered as `kind`. Raises InputError."""
    return load(CORES, "kind of model", kind)


def clean(text: str) -> str:
    """`text` as it can be sent and kept: what is no valid Unicode (a lone surrogate) becomes "?"."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
