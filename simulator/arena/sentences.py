"""A summary as numbered sentences: what a judge cites, and what conciseness counts (CREAM, appendix A.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

__all__ = ["sentences"]

_MARK: Final = re.compile(r"(?:[-*+•–—‣◦▪·]|#{1,6}|\(?\d{1,3}[.)]|\(?[A-Za-z]\))\s+")
"""What a line of a list, or a heading, begins with."""

_END: Final = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]*_]*+\s++|[。！？]++[”’」』）]*+\s*+")
"""Where a sentence may end. What ran before is looked at once: the time is linear in the text."""

_OPENING: Final = "\"'“‘«([*_"

_ABBREVIATED: Final = frozenset(
    "approx ca capt cf cmdr co col corp dept dr ed eq est fig gen gov hon inc jr lt ltd maj messrs mr mrs ms mt no nos op p pp prof rev "
    "sec sen sgt sr st vol vs".split()
)
"""Words whose full stop ends no sentence."""

_INITIAL: Final = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
"""One letter, or several with full stops between: an initial, "e.g", "a.m"."""


def sentences(text: str) -> list[str]:
    """The sentences of a text, in order, each in one line.

    A line's end ends a sentence; marks of lists and headings are taken away. What holds no letter and no digit is none, and what
    holds no letter (a citation such as "[3]" behind the full stop) belongs to the sentence before it in its line.
    """
    found: list[str] = []
    for line in text.splitlines():
        found += _of_line(_MARK.sub("", line.strip(), count=1))
    return found


def _of_line(line: str) -> list[str]:
    found: list[str] = []
    for piece in (" ".join(each.split()) for each in _pieces(line)):
        if found and not any(map(str.isalpha, piece)):
            found[-1] = f"{found[-1]} {piece}".strip()
        elif any(map(str.isalnum, piece)):
            found.append(piece)
    return found


def _pieces(line: str) -> Iterator[str]:
    begin = 0
    for end in _END.finditer(line):
        if _ends(line, begin, end):
            yield line[begin : end.end()]
            begin = end.end()
    yield line[begin:]


def _ends(line: str, begin: int, end: re.Match[str]) -> bool:
    """Whether a sentence that began at `begin` ends where it may: not after an abbreviation, nor before a small letter."""
    after = line[end.end() : end.end() + 4].lstrip(_OPENING)[:1]
    if after.islower():
        return False
    if not end.group().startswith(". "):
        return True
    word = re.search(r"[\w.]*\Z", line[max(begin, end.start() - 40) : end.start()])
    last = word.group() if word else ""
    if last.casefold() in ("no", "nos", "p", "pp"):
        return not after.isdigit()
    return last.casefold() not in _ABBREVIATED and not _INITIAL.fullmatch(last)
