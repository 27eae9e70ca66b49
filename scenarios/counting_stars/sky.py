"""The sky, which is prose long enough to scatter stars over, and messages of sky and stars with an exact number of tokens.

Lengths are in tokens of one tokenizer. A sky knows the approximate position of its n-th token. The message is counted as a whole, and
its sky is extended or shortened until the length is right.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import TextIOWrapper
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Final, final

from longspan.scenarios.counting_stars.endless_story import Language, tell_story
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.files.file_io import open_regular

__all__ = ["MIN_PART", "Sky", "list_text_files", "min_length", "scatter_stars"]

MIN_PART: Final = 6
"""Minimum number of tokens of sky before a star."""
PIECE: Final = 2000
"""Number of characters of a file that are counted together."""
SENTENCE_WINDOW: Final = 8
"""A star is placed at the end of a sentence if one is within this fraction (an eighth) of the distance between two stars."""
MAX_WORD: Final = 40
"""Maximum length in characters of a word that is never cut."""
ATTEMPTS: Final = 10
FULL_ATTEMPTS: Final = 3
"""Number of attempts to meet a length that recut all parts. Later attempts change only the last part."""
SUFFIXES: Final = (".txt", ".md")

SOURCES: Final = "give a file or folder of plain text"

_END: Final = re.compile(r"[.!?][\"”’)]*\s+|[。！？][”’）]*|\n")

Count = Callable[[str], int]


@final
class Sky:
    """The beginning of the text in `pieces`, at least `tokens` tokens long. Raises InputError if the text is shorter."""

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
            raise InputError(f"sky {where}: has {total:,} tokens, but {tokens:,} are needed; give a longer text or a smaller max_context")
        self.text = "".join(chosen)
        self._characters = [0, *accumulate(map(len, chosen))]
        self._tokens = [0, *accumulate(sizes)]

    @classmethod
    def from_story(cls, language: Language, random: Random, count: Count, tokens: int) -> Sky:
        """Return the sky of a generated story."""
        return cls(tell_story(language, random), count, tokens, "made up")

    @classmethod
    def from_files(cls, path: Path, count: Count, tokens: int) -> Sky:
        """Return the sky from one file, or from a folder's files in the order of their paths. Raises InputError."""
        return cls(_pieces(path), count, tokens, str(path))

    def offset(self, tokens: float) -> int:
        """Return the character offset after about `tokens` tokens."""
        at = min(bisect_right(self._tokens, max(0.0, tokens)), len(self._tokens) - 1)
        before, after = self._tokens[at - 1], self._tokens[at]
        share = min(1.0, max(0.0, (tokens - before) / max(1, after - before)))
        return round(self._characters[at - 1] + share * (self._characters[at] - self._characters[at - 1]))


def min_length(stars: Sequence[str], question: str, count: Count) -> int:
    """Return the tokens of the shortest message with these stars and some sky before each."""
    return sum(count(f"{star}\n") + MIN_PART for star in stars) + count(f"\n{question}")


def scatter_stars(sky: Sky, stars: Sequence[str], question: str, length: int, count: Count) -> str:
    """Return a message of `length` tokens, or shorter by less than a star.

    The beginning of the sky is divided into one part for each star. Each part is followed by its star on a separate line, and the
    question comes last.
    """
    shortest = min(map(count, stars))
    size = length - sum(count(f"{star}\n") for star in stars) - count(f"\n{question}")
    candidates: list[tuple[int, str]] = []
    ends: list[int] = []
    for attempt in range(ATTEMPTS):
        if attempt < FULL_ATTEMPTS:
            ends = _ends(sky, len(stars), max(0, size))
        else:  # recutting all parts moves all word ends and may never converge, so only the last part changes now
            ends[-1] = max([*ends[:-1], _word(sky.text, sky.offset(max(0, size)), 0)])
        text = f"{_with_stars(sky, stars, ends)}\n{question}"
        missing = length - count(text)
        if 0 <= missing < shortest:
            return text
        candidates.append((abs(missing), text))
        size += missing - shortest // 2
    return min(candidates)[1]


def _ends(sky: Sky, parts: int, size: int) -> list[int]:
    """Return the character offsets where `parts` similar parts of the sky's first `size` tokens end.

    Parts end after sentences or words.
    """
    last = _word(sky.text, sky.offset(size), 0)
    ends: list[int] = []
    for number in range(1, parts):
        begin = ends[-1] if ends else 0
        at = _between(sky.text, sky.offset(size * number / parts), begin, last // parts // SENTENCE_WINDOW)
        ends.append(min(last, max(begin, at)))
    return [*ends, last]


def _with_stars(sky: Sky, stars: Sequence[str], ends: Sequence[int]) -> str:
    """Return the sky's parts with these ends, each followed by a star."""
    lines: list[str] = []
    for begin, end, star in zip([0, *ends], ends, stars, strict=False):
        lines += [sky.text[begin:end].strip(), star]
    return "\n".join(line for line in lines if line) + "\n"


def _between(text: str, at: int, begin: int, window: int) -> int:
    """Return the end of the sentence nearest to `at`, within `window` characters, or else the end of a word."""
    first = max(begin, at - window)
    ends = [match.end() for match in _END.finditer(text, first, at + window)]
    return min(ends, key=lambda end: abs(end - at)) if ends else _word(text, at, begin)


def _word(text: str, at: int, begin: int) -> int:
    """Return the end of a word, at or before `at`; `at` itself within a very long word."""
    for back in range(at, max(begin, at - MAX_WORD), -1):
        if back >= len(text) or not (_joins(text[back - 1]) and _joins(text[back])):
            return back
    return at


def _joins(char: str) -> bool:
    """Return whether a character forms a word with its neighbours; Chinese has no spaces between words."""
    return char.isalnum() and char < "\u2e80"


def _pieces(path: Path) -> Iterator[str]:
    for file in list_text_files(path):
        try:
            with open_regular(file, SOURCES) as content, TextIOWrapper(content, "utf-8-sig") as text:  # universal newlines
                while piece := text.read(PIECE):
                    yield piece
        except UnicodeDecodeError as error:
            raise InputError(f"sky {file}: not UTF-8 text; convert it, or leave it out") from error
        yield "\n"


def list_text_files(path: Path) -> list[Path]:
    """Return the file itself, or a folder's text files sorted by relative path. Raises InputError for a folder without any."""
    if not path.is_dir():
        with open_regular(path, SOURCES):
            return [path]
    texts = [file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES and file.is_file()]
    visible = [file for file in texts if not any(name.startswith(".") for name in file.relative_to(path).parts)]
    if not visible:
        raise InputError(f"sky {path}: no text files found ({', '.join(SUFFIXES)})")
    return sorted(visible, key=lambda file: file.relative_to(path).parts)
