"""The options of `ltm/CORE?option=value`: its own, and those of its core."""

from __future__ import annotations

import re
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from longspan.agents.base import AgentOptions, InputError, Tokens
from longspan.agents.models.core import Core, OnRefusal, core_class
from longspan.agents.models.window import Eviction
from longspan.simulator.errors import first_problem
from longspan.simulator.fields import validated

__all__ = ["CONTEXT", "LtmOptions", "make_core"]

CONTEXT: Final = 16_000
"""The default tokens of a prompt (GoodAI, section 4.2)."""

_CORE = re.compile(r"(?P<kind>[A-Za-z][\w-]*)[/:](?P<model>.+)", re.DOTALL)


class LtmOptions(AgentOptions):
    """`context`: the maximum tokens of a prompt (default: 16k, or the model's window if that is smaller)."""

    model_config = ConfigDict(frozen=True, extra="allow")

    memory: Literal["semantic", "json", "text"] = "json"
    context: Tokens | None = None
    memories: int = Field(default=10, ge=1, le=100)
    embedder: str = "hash"
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


def make_core(target: str, options: LtmOptions) -> Core:
    """Return the core `KIND/MODEL` with those options that are not the agent's own.

    Raises InputError for an invalid target, and for an option that neither agent nor core has.
    """
    match = _CORE.fullmatch(target)
    if not match:
        raise InputError(f"agent ltm needs a model: ltm/KIND/MODEL, such as ltm/openai/gpt-4o; got ltm/{target!s:.60}")
    cls = core_class(match["kind"])
    model: type[BaseModel] = cls.Options
    core_options = dict(options.model_extra or {})
    known = [info.alias or name for name, info in model.model_fields.items()]
    all_options = f"ltm's options are {', '.join(LtmOptions.model_fields)}; those of {match['kind']} are {', '.join(known)}"
    for name in core_options:
        if name not in known:
            raise InputError(f"agent ltm/{target}: unknown option {name!r:.40}; {all_options}")
    try:
        core: Core = cls(match["model"], validated(model, core_options))
    except ValidationError as error:
        raise InputError(f"agent ltm/{target}: {first_problem(error)}; {all_options}") from None
    return core
