"""The messages and replies exchanged with an agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, final

__all__ = ["Message", "Reply", "Turn", "Usage"]


@final
@dataclass(frozen=True, slots=True)
class Message:
    """A user message as an agent receives it.

    `sent_at` is the conversation's virtual time, without a time zone. `turn_id` is unique in a conversation. A repeated id means that the
    same request is repeated.
    """

    text: str
    sent_at: datetime
    turn_id: str


@final
@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of one reply, as counted by the provider. `cached_tokens` is the part of `input_tokens` that was read from a cache."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> Usage:
        """Return the usage for counts in the journal's format."""
        return cls(counts.get("input_tokens", 0), counts.get("cached_tokens", 0), counts.get("output_tokens", 0))


@final
@dataclass(frozen=True, slots=True)
class Reply:
    """An agent's reply. `trace` may describe how it was made: memories written and read, prompt tokens, inner calls.

    `usage` is the usage of the agent's own model. `besides` is the usage of other models by part, such as "embedder". `cost_usd` is the
    reply's cost in dollars, in total or by part, if the agent knows it. `refused`: the agent's model refused to answer, and `text` replaces
    its answer in the conversation. `measured` gives the seconds that parts of the reply took, under names that end with `_s`.
    """

    text: str
    usage: Usage | None = None
    trace: dict[str, Any] | None = None
    besides: Mapping[str, Usage] = field(default_factory=dict)
    cost_usd: float | Mapping[str, float] | None = None
    refused: bool = False
    measured: Mapping[str, float] = field(default_factory=dict, compare=False)


@final
@dataclass(frozen=True, slots=True)
class Turn:
    """One user message and the agent's reply.

    `number` counts from 0 in a conversation. `start` and `end` are token positions, before the message and after the reply. `test` is the
    id of the turn's test, or None for the opening message and for filler. `asked` is False if the turn was added to the agent's history
    without asking the agent (see `Agent.observe`).
    """

    number: int
    test: str | None
    text: str
    reply: str
    sent_at: datetime
    start: int
    end: int
    asked: bool
