"""The memories that an agent retrieved for a test's questions, and the rank of the evidence among them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, final

from longspan.simulator.pages.report.run_view import TestView, TurnView

__all__ = ["MemoryRead", "describe_ranks", "memories_read"]

CHARS: Final = 200
"""The number of characters shown of a memory."""


@final
class MemoryRead(NamedTuple):
    """A memory read for a question, and the turns that it comes from. `rank` counts from 1. `needed`: the question relies on it."""

    rank: int
    text: str
    turns: list[int]
    needed: bool


def memories_read(test: TestView, turn: TurnView) -> list[MemoryRead]:
    """Return the memories that were read for a turn, by rank. Empty if the agent's trace does not report any."""
    read = (turn.memory or {}).get("read") or []
    ranks = {pair.rank for pair in test.result.evidence if pair.question_turn == turn.number and pair.rank is not None}
    return [MemoryRead(rank, _text(test, each), each.get("turns", []), rank in ranks) for rank, each in enumerate(read, 1)]


def _text(test: TestView, memory: Mapping[str, Any]) -> str:
    """Return the start of a memory's text, of its turns' text if the memory has none, or its id as a last resort."""
    text = memory.get("text", "")
    told = text if isinstance(text, str) else str(text[0])
    if not told and test.conversation is not None:
        turns = [turn for number in memory.get("turns", []) if (turn := test.conversation.turn(number)) is not None]
        told = " / ".join(turn.text.head for turn in turns)
    words = " ".join((told or memory.get("id", "")).split())
    return words if len(words) <= CHARS else f"{words[: CHARS - 1]}…"


def describe_ranks(test: TestView, turn: TurnView) -> list[str]:
    """Return a sentence for each needle of a question with its rank."""
    count = len((turn.memory or {}).get("read") or []) + int((turn.memory or {}).get("unread", 0))
    said = []
    for pair in test.result.evidence:
        if pair.question_turn == turn.number and pair.retrieved is not None:
            place = f"not among the {count:,} found" if pair.rank is None else f"number {pair.rank:,} of {count:,} found"
            said.append(f"the needle of turn {pair.needle_turn:,} is {'in the prompt verbatim' if pair.rank == 0 else place}")
    return said
