"""Takes the user's own words off a reply that repeats them: what only stands in a question answers nothing."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

__all__ = ["without_echo"]

LEAST: Final = 5
"""Words of the shortest sentence whose repetition is an echo."""
MOST: Final = 150
"""Words of a sentence that are compared."""
_ENDS: Final = re.compile(r"(?<=[.!?:])\s+|\n")
_WORD: Final = re.compile(r"\w+")


def without_echo(reply: str, message: str) -> str:
    """Return a reply without the sentences of a message that it repeats word for word. Takes time linear in the reply."""
    return _sentences(message).sub(" ", reply)


@lru_cache(maxsize=200)
def _sentences(message: str) -> re.Pattern[str]:
    cut = (_WORD.findall(sentence)[:MOST] for sentence in _ENDS.split(message))
    patterns = [r"\W{1,5}".join(map(re.escape, words)) for words in cut if len(words) >= LEAST]
    return re.compile(rf"\b(?:{'|'.join(patterns) or '(?!)'})\b\W?", re.IGNORECASE)
