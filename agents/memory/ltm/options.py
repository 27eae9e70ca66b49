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
    """`context`: the maximum tokens of a prompt (default: 16k, or the model's window if that is smaller). `embedder`: see
    `default_embedder` for the default."""

    model_config = ConfigDict(frozen=True, extra="allow")

    memory: Literal["semantic", "json", "text"] = "json"
    context: Tokens | None = None
    memories: int = Field(default=10, ge=1, le=100)
    embedder: str | None = None
    embedder_url: str | None = None
    chroma_url: str | None = None
    chunk: int = Field(default=200, ge=16, le=2000)
    overlap: int = Field(default=40, ge=0, le=2000)
    dedupe: bool = True
    eviction: Eviction = "block"
    overflow: Literal["error", "truncate"] = "error"
    on_refusal: OnRefusal = "reply"

    @model_validator(mode="after")
    def _overlap_is_at_most_half(self) -> LtmOptions:
        if self.overlap > self.chunk // 2:
            raise ValueError(f"overlap={self.overlap} is more than half of chunk={self.chunk}")
        return self


def core_of(target: str, options: LtmOptions) -> Core:
    """Return the core `KIND/MODEL` with those options that are not the agent's own.

    Raises InputError for an invalid target, and for an option that neither agent nor core has.
    """
    core = make_core(f"ltm/{target}", target, options.model_extra or {}, LtmOptions.model_fields)
    if core is None:
        raise InputError(f"agent ltm needs a model: ltm/KIND/MODEL, such as ltm/openai/gpt-4o; got ltm/{target!s:.60}")
    return core
