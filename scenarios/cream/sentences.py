"""Split a summary into sentences. The judge cites them, and conciseness counts them (CREAM, appendix A.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

__all__ = ["split_sentences"]

_MARK: Final = re.compile(r"(?:[-*+•–—‣◦▪·]|#{1,6}|\(?\d{1,3}[.)]|\(?[A-Za-z]\))\s+")
"""The start of a list item or a heading."""

_END: Final = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]*_]*+\s++|[。！？]++[”’」』）]*+\s*+")
"""A possible end of a sentence. Possessive quantifiers keep the running time linear in the length of the text."""

_OPENING: Final = "\"'“‘«([*_"

_ABBREVIATED: Final = frozenset(
    "approx ca capt cf cmdr co col corp dept dr ed eq est fig gen gov hon inc jr lt ltd maj messrs mr mrs ms mt no nos op p pp prof rev "
    "sec sen sgt sr st vol vs".split()
)
"""Words whose full stop does not end a sentence."""

_INITIAL: Final = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
"""One letter, or several with full stops between: an initial, "e.g", "a.m"."""


def split_sentences(text: str) -> list[str]:
    """Split `text` into sentences, each on one line.

    The end of a line ends a sentence. Markers of lists and headings are removed. A piece without letters and digits is dropped; a piece
    without letters, such as the citation "[3]", belongs to the sentence before it on its line.
    """
    return [sentence for line in text.splitlines() for sentence in _of_line(_MARK.sub("", line.strip(), count=1))]


def _of_line(line: str) -> list[str]:
    found: list[list[str]] = []
    for piece in (" ".join(raw.split()) for raw in _pieces(line)):
        if found and not any(map(str.isalpha, piece)):
            found[-1].append(piece)
        elif any(map(str.isalnum, piece)):
            found.append([piece])
    return [" ".join(filter(None, pieces)) for pieces in found]


def _pieces(line: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(line):
        if _ends(line, start, end):
            yield line[start : end.end()]
            start = end.end()
    yield line[start:]


def _ends(line: str, start: int, end: re.Match[str]) -> bool:
    """Return whether a sentence that starts at `start` ends at `end`: not after an abbreviation, nor before a lower-case letter."""
    after = line[end.end() : end.end() + 4].lstrip(_OPENING)[:1]
    if after.islower():
        return False
    if not end.group().startswith(". "):
        return True
    word = re.search(r"[\w.]*\Z", line[max(start, end.start() - 40) : end.start()])
    last = word.group() if word else ""
    if last.casefold() in ("no", "nos", "p", "pp"):
        return not after.isdigit()
    return last.casefold() not in _ABBREVIATED and not _INITIAL.fullmatch(last)
