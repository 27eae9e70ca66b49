"""The options of `ltm/CORE?option=value`: its own and its core's."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import ConfigDict, Field, model_validator

from longspan.agents.base import AgentOptions, InputError, Tokens
from longspan.agents.models.core import Core, OnRefusal, make_core
from longspan.agents.models.window import Eviction

__all__ = ["CONTEXT", "LtmOptions", "core_of"]

CONTEXT: Final = 16_000
"""The default tokens of a prompt (GoodAI, section 4.2)."""


class LtmOptions(AgentOptions):
    """Options that are not declared here are the model's."""

    model_config = ConfigDict(frozen=True, extra="allow")

    memory: Literal["semantic", "json", "text"] = "json"
    """`semantic`: the vector database alone. `json`: also queries in the model's own words, and notes in a JSON object that the model
    changes key by key. `text`: the same with notes in plain text, rewritten each time."""
    context: Tokens | None = None
    """The most tokens of a prompt. Default: 16k, or the model's context less its longest answer, if that is smaller."""
    memories: int = Field(default=10, ge=1, le=100)
    """Maximum number of memories in a prompt."""
    embedder: str | None = None
    """The embedder, which turns text into vectors: `local`, `minilm`, `wordllama`, `openai/MODEL`, `gguf/PATH`, `python:module:Class` or
    `hash`. Default: openai/text-embedding-3-small for OpenAI's models at OpenAI, else `local` if it is installed, else `minilm`."""
    embedder_url: str | None = None
    """Another server with OpenAI's embeddings API, for `openai/MODEL`."""
    chroma_url: str | None = None
    """A Chroma server, such as http://127.0.0.1:8000. Default: Chroma in this process."""
    chunk: int = Field(default=200, ge=16, le=2000)
    """Tokens of a memory. A longer turn becomes several memories."""
    overlap: int = Field(default=40, ge=0, le=2000)
    """Tokens at the end of a memory that the next one of the same turn repeats: whole sentences if possible."""
    dedupe: bool = True
    """Store text that is repeated word for word as one memory with several times."""
    eviction: Eviction = "block"
    """What to drop when the context is full: the oldest quarter (`block`), or the oldest turn each time (`sliding`)."""
    overflow: Literal["error", "truncate"] = "error"
    """The result of a single message larger than the context: `error` ends the conversation, `truncate` cuts the message's middle in the
    prompt. It is remembered whole."""
    on_refusal: OnRefusal = "reply"
    """The result of a refusal by the model: a `reply`, or an `error` that ends the conversation. A refused note or query is left out."""

    @model_validator(mode="after")
    def _overlap_is_at_most_half(self) -> LtmOptions:
        if self.overlap > self.chunk // 2:
            raise ValueError(f"overlap={self.overlap} is more than half of chunk={self.chunk}")
        return self


def core_of(target: str, options: LtmOptions) -> Core:
    """Return the core `KIND/MODEL` with the options that the agent does not declare.

    Raises InputError for an invalid target, and for an option that neither agent nor core has.
    """
    core = make_core(f"ltm/{target}", target, options.model_extra or {}, LtmOptions.model_fields)
    if core is None:
        raise InputError(f"agent ltm needs a model: ltm/KIND/MODEL, such as ltm/openai/gpt-4o; got ltm/{target!s:.60}")
    return core
