"""What goes between the simulator and an agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, final

__all__ = ["Message", "Reply", "Turn", "Usage"]


@final
@dataclass(frozen=True, slots=True)
class Message:
    """What an agent is given: the text, when it was sent, and the turn it opens.

    `sent_at` is virtual time, the conversation's own clock, without a zone. `turn_id` is unique in a conversation;
    the same id again means the same request again, not a new one.
    """

    text: str
    sent_at: datetime
    turn_id: str


@final
@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens one reply cost, as its provider counts them; `cached_tokens` is the part of `input_tokens` read from cache."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0


@final
@dataclass(frozen=True, slots=True)
class Reply:
    """What an agent answers. `trace` may say how: memories written and read, prompt tokens, inner calls.

    `usage` is that of the agent's model; `besides`, by part ("embedder"), of other models that it paid for since its
    last reply.
    """

    text: str
    usage: Usage | None = None
    trace: dict[str, Any] | None = None
    besides: Mapping[str, Usage] = field(default_factory=dict)


@final
@dataclass(frozen=True, slots=True)
class Turn:
    """One user message and the agent's reply.

    `number` counts from 0 in a conversation; `start` and `end` are token positions in it: before the message, and
    after the reply. `test` is the id of the test whose turn it was, None for the opening message and for filler.
    `asked` is False for a turn the agent was told of, not asked (see `Agent.observe`).
    """

    number: int
    test: str | None
    text: str
    reply: str
    sent_at: datetime
    start: int
    end: int
    asked: bool
