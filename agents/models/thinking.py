"""Thinking that a model writes into its answer, between `<think>` and `</think>`."""

from __future__ import annotations

from typing import Final

__all__ = ["split_thinking", "trace_thinking"]

OPEN: Final = "<think>"
CLOSE: Final = "</think>"

MAX_TRACED: Final = 10_000
"""The maximum characters of thinking in a trace."""


def split_thinking(text: str) -> tuple[str, str]:
    """Split an answer into its text and its thinking, in linear time.

    Thinking is text between two tags; text before a first closing tag, since some models' prompts end with the opening one; and an entire
    answer that begins with a tag that is never closed.
    """
    if OPEN not in text and CLOSE not in text:
        return text, ""
    said: list[str] = []
    thought: list[str] = []
    opened, closed = text.find(OPEN), text.find(CLOSE)
    at = 0
    if closed >= 0 and not 0 <= opened < closed:
        thought.append(text[:closed])
        at = closed + len(CLOSE)
    while (start := text.find(OPEN, at)) >= 0:
        end = text.find(CLOSE, start)
        if end < 0 and text[at:start].strip():
            break
        said.append(text[at:start])
        thought.append(text[start + len(OPEN) : end if end >= 0 else len(text)])
        at = end + len(CLOSE) if end >= 0 else len(text)
    said.append(text[at:])
    return "".join(said).strip(), "\n".join(filter(None, map(str.strip, thought)))


def trace_thinking(thinking: str) -> dict[str, str]:
    """Return the trace of thinking, cut to its start if it is long. It is empty without thinking."""
    if not thinking:
        return {}
    return {"thinking": thinking if len(thinking) <= MAX_TRACED else f"{thinking[: MAX_TRACED - 1]}…"}
