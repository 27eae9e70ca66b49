"""Cut texts into pages. Sizes are in tokens, estimated without a tokenizer because scenarios have none."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

__all__ = ["cut_pages", "estimate_tokens", "take_head", "take_tail"]

_UNITS: Final = re.compile(r"[A-Za-z]+|[0-9]{1,3}|[^\W\d_]+|[^\w\s]|[\d_]")
_BREAKS: Final = re.compile(r"\n+")
_PARAGRAPHS: Final = re.compile(r"\s*\n\s*\n\s*")
_SENTENCES: Final = re.compile(r"(?<=[.!?\u2026\"\u201d'\u2019])\s+")
_MAX_PIECE: Final = 200
"""Longest run of characters without white space that stays in one piece. Web addresses and scripts without spaces have longer ones."""


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of `text` in cl100k_base: within a tenth for English prose, more often too high than too low."""
    return math.ceil(_size(text))


@lru_cache(maxsize=500)
def _size(text: str) -> float:
    return (sum(map(_word, text.split())) + 100 * len(_BREAKS.findall(text))) / 100


@lru_cache(maxsize=10_000)
def _word(word: str) -> int:
    """Return the size of a word with its punctuation, in hundredths of a token."""
    return sum(map(_unit, _UNITS.findall(word)))


def _unit(unit: str) -> int:
    if unit[0].isascii():
        if unit[0].isalpha():
            return 100 + 25 * (len(unit) > 6) + 40 * (len(unit) > 9)
        return 180 if unit[0].isdigit() else 100
    return 80 * len(unit) if unit[0].isalpha() else 120


def cut_pages(text: str, size: int) -> list[str]:
    """Cut `text` into pages of similar size, about `size` tokens each.

    Cuts are between paragraphs if these are short enough, otherwise between sentences or words.
    """
    pieces = [(piece, _size(piece)) for piece in _pieces(text, size // 6)]
    number = max(1, round(sum(cost for _, cost in pieces) / size))
    share = sum(cost for _, cost in pieces) / number
    pages: list[list[str]] = [[]]
    done = 0.0
    for piece, cost in pieces:
        if pages[-1] and len(pages) < number and done + cost / 2 > share * len(pages):
            pages.append([])
        pages[-1].append(piece)
        done += cost
    return ["".join(page).strip() for page in pages if "".join(page).strip()]


def take_tail(text: str, tokens: int) -> str:
    """Return the end of `text`, about `tokens` tokens, starting at a paragraph, sentence or word."""
    return "".join(reversed(list(_take_pieces(reversed(list(_pieces(text, tokens // 20))), tokens)))).strip()


def take_head(text: str, tokens: int) -> str:
    """Return the beginning of `text`, at most about `tokens` tokens, up to the end of a sentence if there is one."""
    return "".join(_take_pieces(_pieces(text, tokens // 4), tokens)).strip()


def _take_pieces(pieces: Iterable[str], tokens: int) -> Iterator[str]:
    """Yield pieces while they fit into `tokens`, but at least one."""
    left = float(tokens)
    for number, piece in enumerate(pieces):
        left -= _size(piece)
        if left < 0 and number:
            return
        yield piece


def _pieces(text: str, limit: int) -> Iterator[str]:
    """Cut `text` into paragraphs, paragraphs over `limit` tokens into sentences, and longer sentences into words.

    Joining the pieces gives `text` again.
    """
    for paragraph in _split(_PARAGRAPHS, text):
        if _size(paragraph) <= limit:
            yield paragraph
            continue
        for sentence in _split(_SENTENCES, paragraph):
            if _size(sentence) <= limit:
                yield sentence
            else:
                yield from re.findall(rf"\S{{1,{_MAX_PIECE}}}\s*|^\s+", sentence)


def _split(border: re.Pattern[str], text: str) -> Iterator[str]:
    """Cut `text` after each border, keeping the border with the part before it."""
    begin = 0
    for match in border.finditer(text):
        yield text[begin : match.end()]
        begin = match.end()
    if begin < len(text):
        yield text[begin:]
