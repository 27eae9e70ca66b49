"""What a reply tells of how it came about (`Reply.trace`), bounded in size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from longspan.agents.memory.ltm.fragments import Fragment
from longspan.agents.memory.ltm.memory import Found

__all__ = ["read", "shortened", "written"]

LONGEST: Final = 300
"""Characters of a text. The whole of it is in the journal, with the turn that it is of."""

MOST: Final = 20
"""Memories of one turn, and turns of one memory."""


def written(fragments: Sequence[Fragment]) -> list[dict[str, Any]]:
    """The memories that a turn becomes."""
    return [{"id": fragment.id, "text": shortened(fragment.text)} for fragment in fragments[:MOST]]


def read(found: Sequence[Found]) -> list[Mapping[str, Any]]:
    """The memories that a prompt showed, with the turns that they are of, newest last, and the cosine of each."""
    return [
        {
            "id": memory.newest.id,
            "turns": [fragment.turn_id for fragment in memory.fragments[-MOST:]],
            "text": shortened(memory.newest.text),
            "score": round(memory.score, 4),
        }
        for memory in found
    ]


def shortened(text: str) -> str:
    """A text, or its beginning."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
