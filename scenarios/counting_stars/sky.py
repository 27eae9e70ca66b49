"""The sky: a text so long that stars can be scattered over it, and the message that this makes, to the token.

Lengths are in tokens of one tokenizer. A sky knows about where its n-th token stands; the message is counted as a whole
and its sky cut longer or shorter until the length is met.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Final, final

from longspan.scenarios.counting_stars.story import Language, tell
from longspan.simulator.errors import InputError

__all__ = ["LEAST", "Sky", "files", "least", "scatter"]

LEAST: Final = 6
"""Tokens of sky before a star, at least."""
PIECE: Final = 2000
"""Characters of a file that are counted in one piece."""
NEAR: Final = 8
"""A star goes to the end of a sentence where there is one within an eighth of the distance between two stars."""
WORD: Final = 40
"""Characters of a word that is not cut."""
TRIES: Final = 10
RECUT: Final = 3
"""So many times all parts are cut anew to meet a length, then the last one alone."""
SUFFIXES: Final = (".txt", ".md")

_END: Final = re.compile(r"[.!?][\"”’)]*\s+|[。！？][”’）]*|\n")

Count = Callable[[str], int]


@final
class Sky:
    """The first part of a text, of at least `tokens` tokens. Raises InputError for one that is shorter."""

    def __init__(self, pieces: Iterable[str], count: Count, tokens: int, where: str) -> None:
        chosen: list[str] = []
        sizes: list[int] = []
        total = 0
        for piece in pieces:
            chosen.append(piece)
            sizes.append(count(piece))
            total += sizes[-1]
            if total >= tokens:
                break
        if total < tokens:
            raise InputError(f"sky {where}: has {total:,} tokens, {tokens:,} are needed: give a longer text, or a smaller max_context")
        self.text = "".join(chosen)
        self._characters = [0, *accumulate(map(len, chosen))]
        self._tokens = [0, *accumulate(sizes)]

    @classmethod
    def told(cls, language: Language, random: Random, count: Count, tokens: int) -> Sky:
        """A story that is made up."""
        return cls(tell(language, random), count, tokens, "told")

    @classmethod
    def read(cls, path: Path, count: Count, tokens: int) -> Sky:
        """A text file, or all of a folder's in the order of their paths. Raises InputError."""
        return cls(_pieces(path), count, tokens, str(path))

    def offset(self, tokens: float) -> int:
        """Where, in characters, about so many tokens end."""
        at = min(bisect_right(self._tokens, max(0.0, tokens)), len(self._tokens) - 1)
        before, after = self._tokens[at - 1], self._tokens[at]
        share = min(1.0, max(0.0, (tokens - before) / max(1, after - before)))
        return round(self._characters[at - 1] + share * (self._characters[at] - self._characters[at - 1]))


def least(stars: Sequence[str], question: str, count: Count) -> int:
    """Tokens of the shortest message that holds these stars and some sky before each of them."""
    return sum(count(f"{star}\n") + LEAST for star in stars) + count(f"\n{question}")


def scatter(sky: Sky, stars: Sequence[str], question: str, length: int, count: Count) -> str:
    """A message of `length` tokens: the beginning of the sky in as many parts as there are stars, a star on a line of its own
    behind each part, and the question. It is shorter than `length` by less than a star."""
    star = min(map(count, stars))
    size = length - sum(count(f"{each}\n") for each in stars) - count(f"\n{question}")
    found: list[tuple[int, str]] = []
    ends: list[int] = []
    for attempt in range(TRIES):
        if attempt < RECUT:
            ends = _ends(sky, len(stars), max(0, size))
        else:  # other parts have other word ends, which may go on for ever: only the last one still changes
            ends[-1] = max([*ends[:-1], _word(sky.text, sky.offset(max(0, size)), 0)])
        text = f"{_strewn(sky, stars, ends)}\n{question}"
        short = length - count(text)
        if 0 <= short < star:
            return text
        found.append((abs(short), text))
        size += short - star // 2
    return min(found)[1]


def _ends(sky: Sky, parts: int, size: int) -> list[int]:
    """Where, in characters, as many even parts of the sky's first `size` tokens end, about: behind sentences, or words."""
    last = _word(sky.text, sky.offset(size), 0)
    ends: list[int] = []
    for number in range(1, parts):
        begin = ends[-1] if ends else 0
        at = _between(sky.text, sky.offset(size * number / parts), begin, last // parts // NEAR)
        ends.append(min(last, max(begin, at)))
    return [*ends, last]


def _strewn(sky: Sky, stars: Sequence[str], ends: Sequence[int]) -> str:
    """The sky's parts that end there, with a star behind each."""
    lines: list[str] = []
    for begin, end, star in zip([0, *ends], ends, stars, strict=False):
        lines += [sky.text[begin:end].strip(), star]
    return "\n".join(line for line in lines if line) + "\n"


def _between(text: str, at: int, begin: int, window: int) -> int:
    """The end of the sentence nearest to `at` and at most `window` characters away, else the end of a word."""
    first = max(begin, at - window)
    ends = [match.end() for match in _END.finditer(text, first, at + window)]
    return min(ends, key=lambda end: abs(end - at)) if ends else _word(text, at, begin)


def _word(text: str, at: int, begin: int) -> int:
    """The end of a word, at `at` or before it; `at` itself within a very long one."""
    for back in range(at, max(begin, at - WORD), -1):
        if back >= len(text) or not (_joins(text[back - 1]) and _joins(text[back])):
            return back
    return at


def _joins(char: str) -> bool:
    """Whether a character belongs to a word with the one beside it; Chinese is written without spaces between words."""
    return char.isalnum() and char < "\u2e80"


def _pieces(path: Path) -> Iterator[str]:
    for file in files(path):
        try:
            with file.open(encoding="utf-8-sig") as opened:  # universal newlines: the same text from every system
                while piece := opened.read(PIECE):
                    yield piece
        except UnicodeDecodeError as error:
            raise InputError(f"sky {file}: is not text in UTF-8; convert it, or leave it out") from error
        except OSError as error:
            raise InputError(f"sky {file}: cannot be read: {error.strerror}") from error
        yield "\n"


def files(path: Path) -> list[Path]:
    """The file itself, or a folder's text files, sorted by their paths in it, letter by letter. Raises InputError."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InputError(f"sky {path}: there is no such file or folder; give a text file, or a folder of them")
    found = [each for each in path.rglob("*") if each.suffix.lower() in SUFFIXES and each.is_file()]
    shown = [each for each in found if not any(part.startswith(".") for part in each.relative_to(path).parts)]
    if not shown:
        raise InputError(f"sky {path}: holds no text file ({', '.join(SUFFIXES)})")
    return sorted(shown, key=lambda each: each.relative_to(path).parts)
