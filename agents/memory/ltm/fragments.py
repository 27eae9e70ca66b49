"""Turns in pieces that are remembered one by one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import NamedTuple

__all__ = ["Fragment", "Turn", "fragments", "pieces"]

Count = Callable[[str], int]

_UNITS = (re.compile(r"(?<=\n)(?=.)", re.DOTALL), re.compile(r"(?<=[.!?…]\s)(?=\S)"), re.compile(r"(?<=\s)(?=\S)"))
"""Where a text may be cut: between lines, else between sentences, else between words."""


class Turn(NamedTuple):
    """What was said in a turn, and when (virtual time)."""

    turn_id: str
    text: str
    sent_at: datetime
    reply: str


class Fragment(NamedTuple):
    """A turn, or a piece of one: `id` is the turn's number in the conversation and the piece's in the turn."""

    id: str
    turn_id: str
    sent_at: datetime
    text: str


def fragments(number: int, turn: Turn, count: Count, size: int, overlap: int) -> list[Fragment]:
    """Turn number `number` in pieces of about `size` tokens at most. One that is short enough is one piece: question and
    answer explain each other. Pieces of a longer one overlap by up to `overlap` tokens, and say who speaks."""
    whole = f"User: {turn.text}\nAssistant: {turn.reply}"
    texts = [whole]
    if count(whole) > size:
        texts = [f"User: {piece}" for piece in pieces(turn.text, count, size, overlap)]
        answers = [f"Assistant: {piece}" for piece in pieces(turn.reply, count, size, overlap)]
        if texts and len(answers) == 1 and count(texts[-1]) + count(answers[0]) <= size:
            texts[-1] = f"{texts[-1]}\n{answers.pop()}"
        texts += answers
    return [Fragment(f"{number}.{part}", turn.turn_id, turn.sent_at, text) for part, text in enumerate(texts)]


def pieces(text: str, count: Count, size: int, overlap: int) -> list[str]:
    """`text` in pieces of about `size` tokens at most, cut between lines, sentences or words where that is possible. A piece
    begins with the end of the one before: whole units, `overlap` tokens at most."""
    found: list[str] = []
    held: list[tuple[str, int]] = []
    tokens = 0
    for unit, length in _units(text, count, size):
        if held and tokens + length > size:
            found.append("".join(part for part, _ in held).strip())
            held = _tail(held, min(overlap, size - length))
            tokens = sum(each for _, each in held)
        held.append((unit, length))
        tokens += length
    found.append("".join(part for part, _ in held).strip())
    return [piece for piece in found if piece]


def _tail(held: list[tuple[str, int]], most: int) -> list[tuple[str, int]]:
    """The last units of at most `most` tokens."""
    kept: list[tuple[str, int]] = []
    for unit in reversed(held):
        most -= unit[1]
        if most < 0:
            break
        kept.append(unit)
    return kept[::-1]


def _units(text: str, count: Count, size: int, level: int = 0) -> Iterator[tuple[str, int]]:
    """`text` in the largest units of at most `size` tokens, with their tokens."""
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
