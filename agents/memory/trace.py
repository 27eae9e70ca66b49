"""The trace of a memory: the memories written, and the memories found, best first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from longspan.agents.memory.memory import MemoryItem
from longspan.agents.memory.turns import Turn

__all__ = ["UNKNOWN", "Written", "mark_inferred", "shorten_text", "trace_item", "trace_shown", "trace_written"]

Written = dict[str, str | None]
"""A memory that was written, as a trace lists it."""

UNKNOWN: Final[Mapping[str, str | None]] = {"id": "", "turn": None}
"""One or several memories with unknown source turns."""

MAX_TEXT: Final = 300
"""The maximum characters of a memory in a trace. The journal has the full text of its turn."""

MAX_TURNS: Final = 20
"""The maximum turns listed for a memory."""


def trace_shown(items: Sequence[MemoryItem], *, whole: bool) -> dict[str, Any]:
    """Return the trace of the memories shown, in order. If `whole`, it gives only the first turn shown."""
    if whole:
        first = next((item.turns[0] for item in items if item.turns), None)
        return {"read": []} if first is None else {"read": [], "recent": {"since": first}}
    return {"read": [_trace_shown_item(item) for item in items]}


def trace_written(turns: Sequence[Turn], items: Sequence[MemoryItem] | None) -> list[Written] | None:
    """Return the trace of memories made from turns; None if unknown.

    A memory made from several turns is listed once per turn. Its text is listed only if it differs from the turn.
    """
    if items is None:
        return None
    documents = {turn.turn_id: turn.document for turn in turns}
    return [entry for item in items for entry in _trace_written_item(item, documents)]


def trace_item(item: MemoryItem) -> dict[str, Any]:
    """Return a memory's id and source turns."""
    identity = {} if item.id is None else {"id": item.id}
    turns = {"turns": list(item.turns[:MAX_TURNS])} if item.turns else {}
    return {**identity, **turns, **mark_inferred(item)}


def mark_inferred(item: MemoryItem) -> dict[str, str]:
    """Return the trace entry that marks inferred turns."""
    return {"inferred": item.inferred} if item.inferred else {}


def shorten_text(text: str) -> str:
    """Return `text`, or its start if it is too long."""
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"


def _trace_shown_item(item: MemoryItem) -> dict[str, Any]:
    score = {} if item.score is None else {"score": item.score}
    return {**trace_item(item), "text": shorten_text(item.text), **score}


def _trace_written_item(item: MemoryItem, documents: dict[str, str]) -> Iterator[Written]:
    if item.id is None or not item.turns:  # searches cannot refer to it, or its source is unknown
        yield {**UNKNOWN, "text": shorten_text(item.text)} | ({} if item.id is None else {"id": item.id})
        return
    for number, turn in enumerate(item.turns):
        text = {} if number or documents.get(turn) == item.text else {"text": shorten_text(item.text)}
        yield {"id": item.id, "turn": turn, **text, **mark_inferred(item)}
