"""Cutting a text into pages. Sizes are in tokens, estimated without a tokenizer: scenarios do not have one."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

__all__ = ["about", "head", "paged", "tail"]

_UNITS: Final = re.compile(r"[A-Za-z]+|[0-9]{1,3}|[^\W\d_]+|[^\w\s]|[\d_]")
_BREAKS: Final = re.compile(r"\n+")
_PARAGRAPHS: Final = re.compile(r"\s*\n\s*\n\s*")
_SENTENCES: Final = re.compile(r"(?<=[.!?\u2026\"\u201d'\u2019])\s+")
_LONGEST: Final = 200
"""Characters of a piece without any white space (a web address, a script that has none) that are kept together."""


def about(text: str) -> int:
    """About how many tokens of cl100k_base `text` is: within a tenth for English prose, more often more than less."""
    return math.ceil(_size(text))


@lru_cache(maxsize=500)
def _size(text: str) -> float:
    return (sum(map(_word, text.split())) + 100 * len(_BREAKS.findall(text))) / 100


@lru_cache(maxsize=10_000)
def _word(word: str) -> int:
    """Hundredths of a token that a word takes, with its punctuation."""
    return sum(map(_unit, _UNITS.findall(word)))


def _unit(unit: str) -> int:
    if unit[0].isascii():
        if unit[0].isalpha():
            return 100 + 25 * (len(unit) > 6) + 40 * (len(unit) > 9)
        return 180 if unit[0].isdigit() else 100
    return 80 * len(unit) if unit[0].isalpha() else 120


def paged(text: str, size: int) -> list[str]:
    """`text` in pages of about `size` tokens each: alike in size, cut between paragraphs where these are short enough,
    otherwise between sentences, or words."""
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


def tail(text: str, tokens: int) -> str:
    """The last part of `text`, of about `tokens` tokens, from the beginning of a paragraph, sentence or word."""
    return "".join(reversed(list(_taken(reversed(list(_pieces(text, tokens // 20))), tokens)))).strip()


def head(text: str, tokens: int) -> str:
    """The first part of `text`, of at most about `tokens` tokens, up to the end of a sentence where there is one."""
    return "".join(_taken(_pieces(text, tokens // 4), tokens)).strip()


def _taken(pieces: Iterable[str], tokens: int) -> Iterator[str]:
    """The first pieces, as many as fit, at least one."""
    left = float(tokens)
    for number, piece in enumerate(pieces):
        left -= _size(piece)
        if left < 0 and number:
            return
        yield piece


def _pieces(text: str, most: int) -> Iterator[str]:
    """`text` cut into paragraphs; those over `most` tokens into sentences, and long sentences into words. Joined, the
    pieces are the text again."""
    for paragraph in _split(_PARAGRAPHS, text):
        if _size(paragraph) <= most:
            yield paragraph
            continue
        for sentence in _split(_SENTENCES, paragraph):
            if _size(sentence) <= most:
                yield sentence
            else:
                yield from re.findall(rf"\S{{1,{_LONGEST}}}\s*|^\s+", sentence)


def _split(border: re.Pattern[str], text: str) -> Iterator[str]:
    """`text` cut behind each border; the borders stay."""
    begin = 0
    for match in border.finditer(text):
        yield text[begin : match.end()]
        begin = match.end()
    if begin < len(text):
        yield text[begin:]
