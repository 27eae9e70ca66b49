"""Fragments: the pieces of turns that are stored as memories."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import NamedTuple

from longspan.agents.memory.turns import Turn

__all__ = ["Fragment", "split_text", "split_turn"]

Count = Callable[[str], int]

_UNITS = (re.compile(r"(?<=\n)(?=.)", re.DOTALL), re.compile(r"(?<=[.!?…]\s)(?=\S)"), re.compile(r"(?<=\s)(?=\S)"))
"""Places to cut text: between lines, else between sentences, else between words."""


class Fragment(NamedTuple):
    """A turn or a piece of one. `id` combines the turn's number in the conversation and the piece's number in the turn."""

    id: str
    turn_id: str
    sent_at: datetime
    text: str


def split_turn(number: int, turn: Turn, count: Count, size: int, overlap: int) -> list[Fragment]:
    """Split turn number `number` into pieces of at most about `size` tokens.

    A short turn is one piece, since message and reply explain each other. Pieces of a longer one overlap by up to `overlap` tokens and name
    their speaker.
    """
    whole = f"User: {turn.text}\nAssistant: {turn.reply}"
    texts = [whole]
    if count(whole) > size:
        texts = [f"User: {piece}" for piece in split_text(turn.text, count, size, overlap)]
        answers = [f"Assistant: {piece}" for piece in split_text(turn.reply, count, size, overlap)]
        if texts and len(answers) == 1 and count(texts[-1]) + count(answers[0]) <= size:
            texts[-1] = f"{texts[-1]}\n{answers.pop()}"
        texts += answers
    return [Fragment(f"{number}.{piece}", turn.turn_id, turn.sent_at, text) for piece, text in enumerate(texts)]


def split_text(text: str, count: Count, size: int, overlap: int) -> list[str]:
    """Split `text` into pieces of at most about `size` tokens, cut between lines, sentences or words if possible.

    A piece starts with the last units of the previous one, up to `overlap` tokens.
    """
    texts: list[str] = []
    units: list[tuple[str, int]] = []
    tokens = 0
    for unit, length in _units(text, count, size):
        if units and tokens + length > size:
            texts.append("".join(part for part, _ in units).strip())
            units = _tail(units, min(overlap, size - length))
            tokens = sum(unit_length for _, unit_length in units)
        units.append((unit, length))
        tokens += length
    texts.append("".join(part for part, _ in units).strip())
    return [piece for piece in texts if piece]


def _tail(units: list[tuple[str, int]], max_tokens: int) -> list[tuple[str, int]]:
    """Return the last units with at most `max_tokens` tokens in total."""
    tail: list[tuple[str, int]] = []
    for unit in reversed(units):
        max_tokens -= unit[1]
        if max_tokens < 0:
            break
        tail.append(unit)
    return tail[::-1]


def _units(text: str, count: Count, size: int, level: int = 0) -> Iterator[tuple[str, int]]:
    """Split `text` into the largest units of at most `size` tokens, and count their tokens."""
    tokens = count(text)
    if tokens <= size or len(text) < 2:
        yield text, tokens
        return
    while level < len(_UNITS):
        parts = _UNITS[level].split(text)
        level += 1
        if len(parts) > 1:
            break
    else:
        parts = [text[: len(text) // 2], text[len(text) // 2 :]]
    for part in parts:
        yield from _units(part, count, size, level)
