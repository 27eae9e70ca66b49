"""The cost of distance: the scores of tests with distance and without, in the scenarios that an agent can do."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple, final

from longspan.simulator.results.analysis.guessing import ALPHA, compare_scenarios
from longspan.simulator.results.analysis.statistics import (
    Difference,
    effect_interval,
    least_conversations,
    paired_permutation_p,
    permutation_p,
)
from longspan.simulator.results.effects import difference_interval

__all__ = ["DistanceCost", "PairedTest", "measure_distance_cost"]


@final
class PairedTest(NamedTuple):
    """A test with its score of guessing, its score, and its score without distance. `conversation` is where it was played at a distance."""

    scenario: str
    conversation: str
    chance: float
    score: float
    without: float


@final
class DistanceCost(NamedTuple):
    """Mean scores with distance and without, over the tests of the scenarios that an agent can do.

    `single` are the scenarios with individually significant scores; without any, all count together. `interval` is the 95% interval of the
    loss.
    """

    single: Sequence[str]
    tests: int
    score: float
    without: float
    interval: tuple[float, float]
    p: float

    @property
    def loss(self) -> float:
        return self.without - self.score

    @property
    def is_shown(self) -> bool:
        return self.p < ALPHA and self.loss > 0


def measure_distance_cost(tests: Sequence[PairedTest]) -> DistanceCost | None:
    """Return the cost of distance in the scenarios that the agent can do; None if it is not shown to do any.

    An agent can do a scenario if its scores with distance and without it, taken together, are better than guessing. Choosing by the scores
    without distance alone would select scores that were high by luck, and would count the luck as a loss to distance. Both plays of a test
    count alike here, so swapping them changes no choice. So the permutation test, which swaps them, stays exact.

    The loss is compared test by test, or by whole conversations if there are enough of them to show anything.
    """
    both: dict[str, list[tuple[float, float]]] = {}
    for test in tests:
        both.setdefault(test.scenario, []).extend([(test.score, test.chance), (test.without, test.chance)])
    found = compare_scenarios(both)
    if found.verdict != "better":
        return None
    done = [test for test in tests if not found.better or test.scenario in found.better]
    losses = [Difference(test.scenario, test.conversation, test.without - test.score) for test in done]
    values = [each.value for each in losses]
    if len({each.conversation for each in losses}) < least_conversations(1):
        interval, p = difference_interval(values), permutation_p(values)
    else:
        low, high, _ = effect_interval(losses)
        interval, p = (low, high), paired_permutation_p(losses)
    return DistanceCost(found.better, len(done), fmean(each.score for each in done), fmean(each.without for each in done), interval, p)
