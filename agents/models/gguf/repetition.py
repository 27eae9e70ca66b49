"""Detection of answers that repeat themselves endlessly, as small models do when the likeliest token is always taken."""

from __future__ import annotations

from typing import Final, final

__all__ = ["PERIODS", "TOKENS", "Repetition"]

PERIODS: Final = 5
TOKENS: Final = 80
"""An answer is stopped when its end repeats the same tokens PERIODS times and for at least TOKENS tokens. Rows of a table, items of a list
and lines of a song differ somewhere, or are fewer.
"""

LONGEST: Final = 64
"""The maximum period in tokens."""


@final
class Repetition:
    """A detector of repetition, fed token by token: the last tokens are the same piece over and over."""

    def __init__(self) -> None:
        self._tokens: list[int] = []
        self._same = [0] * (LONGEST + 1)
        """The number of tokens at the end that equal those one period before, by period."""

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
