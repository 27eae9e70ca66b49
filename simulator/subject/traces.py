"""The parts of a trace that longspan reads: how an agent's reply came about (docs/own-agents.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["ReadMemory", "Recent", "Trace", "TracePart", "WrittenMemory"]


class TracePart(BaseModel):
    """A part of a trace. The fields declared here are validated; others are kept unchanged."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)


Inferred = Literal["", "whole", "part"]
"""Whether a memory's turns were inferred from its wording: they explain its `whole` text, or a `part` of it."""


class WrittenMemory(TracePart):
    """A memory that was written, and its turn if it is not the reply's own; null if it is unknown."""

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
    """The first of the recent turns. All turns from there on were shown to the model."""

    since: str | None = None


class Trace(TracePart):
    """How a reply came about. `longspan.simulator.gradebook.needle_fates` uses it for grades.

    `forgotten`: the memories that are gone because the user asked the agent to forget them. `until`: the last turn whose memories have all
    been reported as written; any other turn up to there was not stored. `answers`: false if the reply is not an answer, since the agent
    only searched its memory; the test is then not scored. `k`: the most memories that the agent asked for. `beyond_k`: how many more a
    search returned; they were not used.
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
