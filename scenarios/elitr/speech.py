"""Make sentences look like transcribed speech, with hesitations, repeated and unfinished words, and inaudible passages."""

from __future__ import annotations

from random import Random
from typing import Final

from longspan.scenarios.shared.word_lists import load_words

__all__ = ["add_hesitations"]

HESITATION_RATE: Final = 0.07
REPETITION_RATE: Final = 0.035
UNFINISHED_RATE: Final = 0.02
"""Probability of each disfluency, per word."""


def add_hesitations(random: Random, sentence: str) -> str:
    """Return a sentence as someone might say it. Its words stay in order; words joined by a no-break space stay together."""
    said: list[str] = []
    for word in sentence.split(" "):
        draw = random.random()
        if draw < HESITATION_RATE:
            said.append(random.choice(load_words("meetings")["hesitations"]))
        elif draw < HESITATION_RATE + REPETITION_RATE and word.isalpha() and len(word) < 5:
            said.append(word)
        elif draw < HESITATION_RATE + REPETITION_RATE + UNFINISHED_RATE and word.isalpha() and len(word) > 4:
            said.append(f"{word[: random.randint(2, 3)]}-")
        said.append(word)
    return " ".join(said)
