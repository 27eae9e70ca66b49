"""Removes sentences that a reply repeats from the user's message: a value that only occurs in the question is not an answer."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from longspan.simulator.reading.replies.splitting import SENTENCE_END

__all__ = ["without_echo"]

LEAST: Final = 5
"""The fewest words of a sentence that counts as an echo. Shorter ones ("Thank you.") may be the reply's own words."""
MOST: Final = 150
"""The number of words of a sentence that are compared."""
_ENDS: Final = re.compile(rf"{SENTENCE_END.pattern}|(?<=:)\s+")
_WORD: Final = re.compile(r"\w+")


def without_echo(reply: str, message: str) -> str:
    """Return `reply` without the sentences of `message` that it repeats word for word. Takes time linear in the length of the reply."""
    return _sentences(message).sub(" ", reply)


@lru_cache(maxsize=200)
def _sentences(message: str) -> re.Pattern[str]:
    cut = (_WORD.findall(sentence)[:MOST] for sentence in _ENDS.split(message))
    patterns = [r"\W{1,5}".join(map(re.escape, words)) for words in cut if len(words) >= LEAST]
    return re.compile(rf"\b(?:{'|'.join(patterns) or '(?!)'})\b\W?", re.IGNORECASE)
