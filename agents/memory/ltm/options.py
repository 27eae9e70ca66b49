"""What `ltm/CORE...?option=value` takes: options of its own, and those of its core."""

from __future__ import annotations

import re
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from longspan.agents.base import AgentOptions, InputError, Tokens
from longspan.agents.models.core import Core, core_class
from longspan.agents.models.window import Eviction
from longspan.simulator.errors import first_problem

__all__ = ["CONTEXT", "LtmOptions", "make_core"]

CONTEXT: Final = 16_000
"""Tokens of a prompt, unless told otherwise (GoodAI, section 4.2)."""

_CORE = re.compile(r"(?P<kind>[A-Za-z][\w-]*)[/:](?P<model>.+)", re.DOTALL)


class LtmOptions(AgentOptions):
    """`context`: tokens of a prompt at most (default: 16k, or what the model takes where that is less)."""

    model_config = ConfigDict(frozen=True, extra="allow")

    memory: Literal["semantic", "json", "text"] = "json"
    context: Tokens | None = None
    memories: int = Field(default=10, ge=1, le=100)
    embedder: str = "hash"
    embedder_url: str | None = None
    chroma_url: str | None = None
    chunk: int = Field(default=200, ge=16, le=2000)
    overlap: int = Field(default=40, ge=0)
    dedupe: bool = True
    eviction: Eviction = "block"
    overflow: Literal["error", "truncate"] = "error"

    @model_validator(mode="after")
    def _overlap_leaves_something_new(self) -> LtmOptions:
        if self.overlap > self.chunk // 2:
            raise ValueError(f"overlap={self.overlap} is more than half of chunk={self.chunk}")
        return self


def make_core(target: str, options: LtmOptions) -> Core:
    """The core that `KIND/MODEL` names, made with the options that are not the agent's own.

    Raises InputError for a target that is none, and for an option that neither has.
    """
    named = _CORE.fullmatch(target)
    if not named:
        raise InputError(f"agent ltm needs a model to think with: ltm/KIND/MODEL, such as ltm/openai/gpt-4o; got ltm/{target!s:.60}")
    cls = core_class(named["kind"])
    model: type[BaseModel] = cls.Options
    given = dict(options.model_extra or {})
    known = [info.alias or name for name, info in model.model_fields.items()]
    there_are = f"ltm's options are {', '.join(LtmOptions.model_fields)}; those of {named['kind']} are {', '.join(known)}"
    for name in given:
        if name not in known:
            raise InputError(f"agent ltm/{target}: there is no option {name!r:.40}; {there_are}")
    try:
        core: Core = cls(named["model"], model.model_validate(given))
    except ValidationError as error:
        raise InputError(f"agent ltm/{target}: option {first_problem(error)}; {there_are}") from None
    return core
