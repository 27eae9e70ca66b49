"""The trace of a reply (`Reply.trace`), limited in size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from longspan.agents.memory.ltm.fragments import Fragment
from longspan.agents.memory.ltm.vector_memory import ScoredMemory

__all__ = ["ReplyTrace", "cut_text", "parse_trace", "trace_fragments", "trace_memories"]

MAX_TEXT: Final = 300
"""The maximum characters of a memory in a trace. The journal has the full text of its turn."""

MAX_ITEMS: Final = 20
"""The maximum memories of a turn, and turns of a memory."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


@final
class _Recent(_Part):
    turns: int = Field(default=2**53, ge=0)


@final
class _Usage(_Part):
    input_tokens: int = Field(ge=0)


@final
class _Call(_Part):
    usage: _Usage


@final
class ReplyTrace(_Part):
    """The agent's state after a reply, as its trace records it.

    It has new notes if any, how many turns were recent, our count of the prompt's tokens, and the calls. The last call produced the reply.
    """

    notes: str | None = None
    recent: _Recent = _Recent()
    prompt_tokens: int = Field(default=1, ge=1)
    calls: list[_Call] = []


def parse_trace(trace: Mapping[str, Any] | None) -> ReplyTrace:
    """Parse a trace. Another agent's trace yields the defaults."""
    try:
        return ReplyTrace.model_validate(trace or {})
    except ValidationError:
        return ReplyTrace()


def trace_fragments(fragments: Sequence[Fragment]) -> list[dict[str, Any]]:
    """Return the memories made from a turn."""
    return [{"id": fragment.id, "text": cut_text(fragment.text)} for fragment in fragments[:MAX_ITEMS]]


def trace_memories(memories: Sequence[ScoredMemory]) -> list[Mapping[str, Any]]:
    """Return the memories in a prompt, in order, each with its cosine and its turns, newest last."""
    return [
        {
            "id": memory.newest.id,
            "turns": [fragment.turn_id for fragment in memory.fragments[-MAX_ITEMS:]],
            "text": cut_text(memory.newest.text),
            "score": round(memory.score, 4),
        }
        for memory in memories
    ]


def cut_text(text: str) -> str:
    """Return `text`, or its start if it is too long."""
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
