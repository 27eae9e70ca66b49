"""Exact tests of whether scores are higher than the score of guessing, over all tests and by scenario.

A guess is right or wrong as a whole here, which is the most that it can vary. Guesses at different tests are independent even within a
conversation, since each test draws its questions separately. So the number of lucky guesses is a sum of Bernoulli variables (Poisson,
1837). Partial scores are rounded down, so that parts of marks do not add up to luck.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from math import ceil, floor, fsum
from typing import Final, Literal, NamedTuple, final

from longspan.simulator.results.analysis.statistics import holm

__all__ = ["ALPHA", "GuessingTest", "compare_scenarios", "compare_with_guessing"]

ALPHA: Final = 0.05
"""The significance level."""

HALF: Final = 0.5
"""The least share of the points beyond guessing for an agent that can do the tests."""

SLACK: Final = 1e-9
"""The tolerance for rounding in a sum."""


@final
class GuessingTest(NamedTuple):
    """A test of scores against guessing.

    `p` is the probability that guesses score as high. `p_half` is the probability of a score as low for an agent that gets half of the
    points beyond guessing. `better` names the scenarios whose scores are significantly better than guessing.
    """

    p: float
    p_half: float
    better: Sequence[str] = ()

    @property
    def verdict(self) -> Literal["better", "not better", "too few"]:
        """Whether the scores are better than guessing. "too few": the tests show neither that nor the opposite."""
        return "better" if self.p < ALPHA else "not better" if self.p_half < ALPHA else "too few"


def compare_with_guessing(scores: Sequence[tuple[float, float]]) -> GuessingTest:
    """Test the scores of tests, each with the score of guessing, both in [0, 1]."""
    chances = [chance for _, chance in scores]
    halves = [chance + HALF * (1 - chance) for chance in chances]
    total = fsum(score for score, _ in scores)
    return GuessingTest(_at_least(chances, floor(total + SLACK)), 1 - _at_least(halves, ceil(total - SLACK) + 1))


def compare_scenarios(scores: Mapping[str, Sequence[tuple[float, float]]]) -> GuessingTest:
    """Test the scores of several scenarios, each with the score of guessing.

    If chances differ, one sum hides an agent's abilities: the luck of easily guessed scenarios drowns three right answers that cannot be
    guessed. One p-value by scenario hides the opposite: a little ability everywhere. So there are two tests. One is of the sum over all
    scenarios, each test with its own chance. The other is of each scenario separately, corrected by Holm's method (1979). `p` is twice the
    smaller p-value (Bonferroni), so that guesses pass with a probability of at most 5%. Both are exact and need no simulation. Fisher's sum
    of logarithms would need one, since three tests have few possible p-values, and would miss a single scenario out of ten.

    Scenarios are named only if `p` is significant. So all statements are right with a probability of at least 95%, whether the agent
    guesses everywhere or in some scenarios. This is a gatekeeping procedure (Dmitrienko, Offen and Westfall, 2003).
    """
    together = compare_with_guessing([*chain(*scores.values())])
    corrected = holm([compare_with_guessing(tests).p for tests in scores.values()])
    p = min(1.0, 2 * min(together.p, *corrected)) if len(scores) > 1 else together.p
    better = [name for name, each in zip(scores, corrected, strict=True) if p < ALPHA and each < ALPHA]
    return together._replace(p=p, better=better)


def _at_least(chances: Sequence[float], number: int) -> float:
    """Return the probability that at least this number of independent events with these chances happen."""
    import numpy as np

    if number <= 0:
        return 1.0
    if number > len(chances):
        return 0.0
    happened = np.ones(1)
    for chance in chances:
        happened = np.convolve(happened, (1 - chance, chance))
    return float(min(1.0, happened[number:].sum()))
