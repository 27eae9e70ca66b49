"""Answers that repeat themselves without end, as those of small models do when the likeliest token is always taken."""

from __future__ import annotations

from typing import Final, final

__all__ = ["PERIODS", "TOKENS", "Repetition"]

PERIODS: Final = 5
TOKENS: Final = 80
"""An answer is stopped when its end is the same tokens this many times over, and at least so many tokens in all. Rows of a table,
items of a list and lines of a song differ somewhere, or are fewer."""

LONGEST: Final = 64
"""The most tokens that are looked for as one period."""


@final
class Repetition:
    """Whether an answer, given token by token, has begun to repeat itself: its last tokens are the same piece over and over."""

    def __init__(self) -> None:
        self._tokens: list[int] = []
        self._same = [0] * (LONGEST + 1)
        """For each period, how many tokens at the end are equal to those one period before."""

    def add(self, token: int) -> bool:
        """Add the next token. Return whether the answer now repeats itself."""
        tokens, same = self._tokens, self._same
        found = False
        for period in range(1, min(LONGEST, len(tokens)) + 1):
            if tokens[-period] != token:
                same[period] = 0
                continue
            same[period] += 1
            found |= same[period] + period >= max(PERIODS * period, TOKENS)
        tokens.append(token)
        return found
