"""The memories that an agent found for a test's questions, and the ranks of the evidence among them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, final

from longspan.simulator.report.reading import TestView, TurnView

__all__ = ["Found", "found_at", "places"]

CHARS: Final = 200
"""The number of characters shown of a memory."""


@final
class Found(NamedTuple):
    """A memory that was read for a question, with the turns that it comes from. `rank` counts from 1; `needed` means that the question
    needs it."""

    rank: int
    text: str
    turns: list[int]
    needed: bool


def found_at(test: TestView, turn: TurnView) -> list[Found]:
    """Return the memories that were read for a turn of a test, in order of rank, as far as the agent's trace tells."""
    read = (turn.memory or {}).get("read") or []
    ranks = {pair.rank for pair in test.result.evidence if pair.question_turn == turn.number and pair.rank is not None}
    return [Found(rank, _text(test, each), each.get("turns", []), rank in ranks) for rank, each in enumerate(read, 1)]


def _text(test: TestView, memory: Mapping[str, Any]) -> str:
    """Return the start of a memory's text, or of its turn's text if the memory has none of its own."""
    text = memory.get("text", "")
    told = text if isinstance(text, str) else str(text[0])
    if not told and test.conversation is not None:
        turns = [turn for number in memory.get("turns", []) if (turn := test.conversation.turn(number)) is not None]
        told = " / ".join(turn.text.head for turn in turns)
    words = " ".join((told or memory.get("id", "")).split())
    return words if len(words) <= CHARS else f"{words[: CHARS - 1]}…"


def places(test: TestView, turn: TurnView) -> list[str]:
    """Say which rank each needle of a question had."""
    count = len((turn.memory or {}).get("read") or []) + int((turn.memory or {}).get("unread", 0))
    said = []
    for pair in test.result.evidence:
        if pair.question_turn == turn.number and pair.retrieved is not None:
            place = f"not among the {count:,} found" if pair.rank is None else f"number {pair.rank:,} of {count:,} found"
            said.append(f"the needle of turn {pair.needle_turn:,} is {'in the prompt as it was said' if pair.rank == 0 else place}")
    return said
