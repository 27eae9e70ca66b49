"""Cores: chat models that take a list of messages. Chat agents, the ltm agent and judges are built on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol

from longspan.agents.base import AgentError, AgentOptions, Usage
from longspan.simulator.plugins import load

__all__ = [
    "CORES",
    "ChatMessage",
    "Completion",
    "ContextOverflowError",
    "Core",
    "CoreOptions",
    "OnRefusal",
    "RefusalError",
    "clean",
    "core_class",
    "stamped",
]

CORES = "longspan.cores"
"""The entry-point group of cores: openai, anthropic, google, gguf. Each is a class with nested `Options(CoreOptions)`, whose
arguments are its target (a model's name or path) and its options."""


class ChatMessage(NamedTuple):
    """A message to or from a chat model. Its text is valid Unicode: see `clean`."""

    role: Literal["system", "user", "assistant"]
    text: str


class Completion(NamedTuple):
    """A core's answer and the tokens it used."""

    text: str
    usage: Usage


class ContextOverflowError(AgentError):
    """The prompt is too long for the model. The caller may retry with a shorter one."""


class RefusalError(AgentError):
    """The model refused to answer.

    `why`: a content filter, a safety block, a tool call that nobody asked for, the model itself. `text`: what it said instead, or
    else "(no reply: WHY)". `usage`: the tokens used.
    """

    def __init__(self, message: str, why: str, text: str, usage: Usage) -> None:
        super().__init__(message)
        self.why = why
        self.text = text or f"(no reply: {why})"
        self.usage = usage


OnRefusal = Literal["reply", "error"]
"""What an agent does when its model refuses: give the refusal as its reply, or fail."""


class CoreOptions(AgentOptions):
    """A core's options. Each core has a subclass."""


class Core(Protocol):
    """A chat model. Calls may overlap only if the core says so. Every call may be cancelled."""

    name: str
    """Its spec without options, such as "openai/gpt-4o": for errors and prices."""
    overhead: int
    """Tokens that a message takes beyond those of its text."""
    window: int | None
    """The maximum tokens of prompt and answer together, if known."""
    max_output: int
    """The maximum tokens of an answer: the default for `complete`."""

    def count(self, text: str) -> int:
        """Return the tokens of a text, by the model's own tokenizer if it is available."""
        ...

    async def complete(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """Return the model's answer to a conversation, of at most `max_tokens` tokens; JSON if a JSON `schema` is given.

        `messages` are an optional system message, then user and assistant in turn, ending with the user. Raises AgentError if the
        model cannot be reached or gives an unreadable answer, RefusalError if it refuses, ContextOverflowError if the prompt is too
        long.
        """
        ...


def core_class(kind: str) -> Any:
    """Return the class of the core registered as `kind`. Raises InputError if there is none."""
    return load(CORES, "kind of model", kind)


def stamped(text: str, sent_at: datetime) -> str:
    """Return a message with its virtual time, which is absolute so that the message stays the same in all later prompts."""
    return f"[{sent_at:%a %Y-%m-%d %H:%M:%S}] {text}"


def clean(text: str) -> str:
    """Return `text` as valid Unicode: a lone surrogate becomes "?"."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
