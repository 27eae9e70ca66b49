"""Whether tests score higher than guessing would: exact tests, with whole tests as units.

A guess is right or wrong as a whole here, the most that it can vary. Guesses at different tests are independent, whatever conversations the
tests share, since each test draws what it asks for by itself. So the number of lucky guesses is a sum of Bernoulli variables (Poisson,
1837). Scores in between are rounded down, so that parts of marks do not add up to luck.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, fsum, prod
from typing import Final, Literal, NamedTuple, final

__all__ = ["ALPHA", "Against", "against"]

ALPHA: Final = 0.05
"""The significance level."""

HALF: Final = 0.5
"""An agent that can do tests earns at least this share of what guessing leaves over."""

SLACK: Final = 1e-9
"""What rounding may take from a sum."""


@final
class Against(NamedTuple):
    """Scores of tests against guessing. `p` is how probable it is that guesses score as high, `p_half` that an agent scores as low which
    earns half of what guessing leaves over. `fewest` is the latter of an agent that fails every test."""

    tests: int
    p: float
    p_half: float
    fewest: float

    @property
    def verdict(self) -> Literal["above", "not above", "too few"]:
        """Whether the scores are above chance; too few if the tests could tell neither that nor the contrary, or do not."""
        if self.fewest >= ALPHA:
            return "too few"
        return "above" if self.p < ALPHA else "not above" if self.p_half < ALPHA else "too few"


def against(scores: Sequence[tuple[float, float]]) -> Against:
    """Test the scores of tests, each with the score of guessing, both in [0, 1]."""
    chances = [chance for _, chance in scores]
    halves = [chance + HALF * (1 - chance) for chance in chances]
    total = fsum(score for score, _ in scores)
    return Against(
        tests=len(scores),
        p=_at_least(chances, floor(total + SLACK)),
        p_half=1 - _at_least(halves, ceil(total - SLACK) + 1),
        fewest=prod(1 - half for half in halves),
    )


def _at_least(chances: Sequence[float], number: int) -> float:
    """Return the probability that at least so many of independent events with these chances happen."""
    import numpy as np

    if number <= 0:
        return 1.0
    if number > len(chances):
        return 0.0
    happened = np.ones(1)
    for chance in chances:
        happened = np.convolve(happened, (1 - chance, chance))
    return float(min(1.0, happened[number:].sum()))
