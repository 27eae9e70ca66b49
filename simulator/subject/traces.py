"""The parts of a trace that longspan reads: how an agent's reply came about (docs/guides/own-agents.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["ReadMemory", "Recent", "Trace", "TracePart", "WrittenMemory"]


class TracePart(BaseModel):
    """A part of a trace. Declared fields are validated; other fields are kept unchanged."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)


Inferred = Literal["", "whole", "part"]
"""Whether a memory's turns were inferred from its wording. They account for its `whole` text, or for a `part` of it."""


class WrittenMemory(TracePart):
    """A memory that was written. `turn` is its turn, if that is not the reply's own; null means unknown."""

    id: str
    text: str = ""
    turn: str | None = None
    inferred: Inferred = ""


class ReadMemory(TracePart):
    """A memory that was read or forgotten, and its turns. An agent that ranks memories lists the best first."""

    id: str | None = None
    text: str = ""
    turns: list[str] | None = None
    inferred: Inferred = ""


class Recent(TracePart):
    """The recent turns in the prompt: the model saw all turns from `since` on."""

    since: str | None = None


class Trace(TracePart):
    """How a reply came about. `longspan.simulator.results.gradebook.needle_fates` evaluates it.

    `forgotten`: memories deleted because the user asked the agent to forget them. `until`: the agent has reported all memories up to this
    turn, so a turn before it without a memory was not stored. `answers`: false if the agent only searched its memory and the reply is no
    answer; the test is then not scored. `k`: the most memories that the agent asked for. `beyond_k`: how many more memories a search
    returned; they were not used.
    """

    written: list[WrittenMemory] = Field(default_factory=list)
    read: list[ReadMemory] = Field(default_factory=list)
    recent: Recent | None = None
    forgotten: list[ReadMemory] = Field(default_factory=list)
    until: str | None = None
    answers: bool = True
    k: Annotated[int, Field(ge=1, le=10**6)] | None = None
    beyond_k: Annotated[int, Field(ge=0, le=10**9)] = 0
    prompt_tokens: Annotated[int, Field(ge=0, le=10**12)] = 0
    calls: Sequence[TracePart] = Field(default_factory=list)
