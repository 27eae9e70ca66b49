"""Speech as a transcript has it: with hesitations, repeated and broken-off words, and what nobody understood."""

from __future__ import annotations

from random import Random
from typing import Final

from longspan.scenarios.shared.lists import words

__all__ = ["spoken"]

HESITATES: Final = 0.07
REPEATS: Final = 0.035
BREAKS_OFF: Final = 0.02
"""How often, word by word."""


def spoken(random: Random, sentence: str) -> str:
    """A sentence as somebody says it. Its words stay, in their order; what a no-break space joins stays together."""
    said: list[str] = []
    for word in sentence.split(" "):
        draw = random.random()
        if draw < HESITATES:
            said.append(random.choice(words("meetings")["hesitations"]))
        elif draw < HESITATES + REPEATS and word.isalpha() and len(word) < 5:
            said.append(word)
        elif draw < HESITATES + REPEATS + BREAKS_OFF and word.isalpha() and len(word) > 4:
            said.append(f"{word[: random.randint(2, 3)]}-")
        said.append(word)
    return " ".join(said)
