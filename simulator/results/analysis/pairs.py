"""A comparison of two agents on the same tests or questions: the difference, and whether chance explains it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from statistics import fmean
from typing import Final, Literal, NamedTuple, final

from longspan.simulator.base.shares import format_percent
from longspan.simulator.results.analysis.pairing import TestPair
from longspan.simulator.results.analysis.statistics import (
    ALPHA,
    Difference,
    by_test,
    difference_limits,
    holm,
    least_conversations,
    more_conversations,
    paired_permutation_p,
    permutation_p,
)
from longspan.simulator.results.graded_runs import Column

__all__ = ["Pair", "SharedTests", "Verdict", "compare_pairs", "share_scores"]

Counted = Literal["tests", "questions"]

Verdict = Literal["better", "worse", "better here", "worse here", "tie", "too few", "not shown"]
"""The verdict on the first agent of a comparison, in the words of every medium. `here`: in these conversations, while others may differ."""

LEAST_FORECAST: Final = 5
"""The fewest conversations for a forecast of further ones. With fewer, their spread is too uncertain."""

NOISE: Final = 0.1
"""A p-value of this or more gets no forecast.

A forecast is inversely proportional to the square of the difference. For two equal agents it would be arbitrary; with this limit, they get
one in at most a tenth of all comparisons.
"""


@final
class Pair(NamedTuple):
    """An agent and another on the same tests of a column, as one of several comparisons. Tests without a score count as 0.

    `share` and `of_other` are shares of full marks, or of the evidence found. `difference` is the first minus the second; `interval` is its
    95% interval, if it has one. `points` is the difference as a score. `conversations` is the number of independent conversations;
    `recorded` is whether some of them tell recorded histories. `tests` is the number of tests or questions that both had, as `counted`
    says.

    `p` is the p-value of a permutation test over conversations. If these are too `few` for any difference to be significant, `p_of_tests`
    is the p-value of a permutation test over single tests or questions. It does not generalise to other conversations, and is None
    elsewhere. `corrected` is `p` corrected for all comparisons, as is `p_of_tests`. `more` is the number of further conversations that
    would make the difference significant, or None without a forecast.
    """

    column: Column
    agent: str
    other: str
    share: float
    of_other: float
    difference: float
    interval: tuple[float, float] | None
    points: float
    conversations: int
    recorded: bool
    tests: int
    counted: Counted
    unscored: int
    few: bool
    p: float
    corrected: float
    p_of_tests: float | None
    more: int | None

    @property
    def verdict(self) -> Verdict:
        if self.corrected < ALPHA:
            return "better" if self.difference > 0 else "worse"
        if self.p_of_tests is not None and self.p_of_tests < ALPHA:
            return "better here" if self.difference > 0 else "worse here"
        if format_percent(self.share) == format_percent(self.of_other):
            return "tie"
        return "too few" if self.few else "not shown"

    @property
    def turned(self) -> Pair:
        """The same pair from the other agent's side."""
        interval = None if self.interval is None else (-self.interval[1], -self.interval[0])
        return self._replace(
            agent=self.other,
            other=self.agent,
            share=self.of_other,
            of_other=self.share,
            difference=-self.difference,
            points=-self.points,
            interval=interval,
        )

    @property
    def best_first(self) -> Pair:
        """The same pair from the better agent's side."""
        return self if self.difference >= 0 else self.turned


@final
@dataclass(frozen=True, eq=False)
class SharedTests:
    """The tests or questions that two agents share in a column.

    Its figures do not depend on the other comparisons, and are computed once. `apart` lists the agents' differences in each test or
    question, as `counted` says. `bound` computes the interval of the difference.
    """

    column: Column
    agent: str
    other: str
    share: float
    of_other: float
    apart: Sequence[Difference]
    counted: Counted
    bound: Callable[[Sequence[Difference]], tuple[float, float] | None]
    unscored: int = 0
    recorded: bool = False

    @cached_property
    def conversations(self) -> int:
        return len({each.conversation for each in self.apart})

    @cached_property
    def p(self) -> float:
        return paired_permutation_p(self.apart)

    @cached_property
    def p_of_tests(self) -> float:
        return permutation_p(by_test(self.apart))

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """The 95% interval of the difference; None with too few conversations for any test to support its claim."""
        return self.bound(self.apart) if self.conversations >= least_conversations(1) else None

    def forecast(self, pairs: int) -> int | None:
        """Return the number of further conversations that would make the difference significant among this number of `pairs`; None without
        a sound forecast."""
        if self.conversations < LEAST_FORECAST or self.p >= NOISE or (more := more_conversations(self.apart, pairs)) is None:
            return None
        return max(1, more)


def share_scores(column: Column, agent: str, other: str, both: Sequence[TestPair]) -> SharedTests | None:
    """Return the tests that two agents have `both` had, by scores; None without any. Tests of plain facts are compared by questions."""
    asked = [(each, each.questions) for each in both]
    apart = [Difference(each.scenario, each.conversation, one - two) for each, scores in asked for one, two in scores]
    by_scenario: dict[str, list[tuple[float, float]]] = {}
    for each, scores in asked:
        by_scenario.setdefault(each.scenario, []).extend(scores)
    if not apart:
        return None
    share, of_other = (fmean(fmean(pair[side] for pair in scores) for scores in by_scenario.values()) for side in (0, 1))
    return SharedTests(
        column,
        agent,
        other,
        share,
        of_other,
        apart,
        counted="tests" if len(apart) == len(both) else "questions",
        bound=lambda differences: difference_limits(differences, ALPHA / 2),
        unscored=sum(each.unscored for each in both),
        recorded=any(each.recorded for each in both),
    )


def compare_pairs(shared: Sequence[SharedTests]) -> list[Pair]:
    """Compare agents on the tests or questions they share. p-values are corrected for all these comparisons together."""
    least = least_conversations(len(shared) or 1)
    corrected = holm([each.p for each in shared])
    few = [each for each in shared if each.conversations < min(len(each.apart), least)]
    of_tests = dict(zip(map(id, few), holm([each.p_of_tests for each in few]), strict=True))
    return [
        _pair(each, p, of_tests.get(id(each)), len(shared), few=each.conversations < least)
        for each, p in zip(shared, corrected, strict=True)
    ]


def _pair(shared: SharedTests, corrected: float, p_of_tests: float | None, pairs: int, *, few: bool) -> Pair:
    points = fsum(by_test(shared.apart))
    return Pair(
        column=shared.column,
        agent=shared.agent,
        other=shared.other,
        share=shared.share,
        of_other=shared.of_other,
        difference=points / len({each.scenario for each in shared.apart}),
        interval=shared.interval,
        points=points,
        conversations=shared.conversations,
        recorded=shared.recorded,
        tests=len(shared.apart),
        counted=shared.counted,
        unscored=shared.unscored,
        few=few,
        p=shared.p,
        corrected=corrected,
        p_of_tests=p_of_tests,
        more=None if corrected < ALPHA else shared.forecast(pairs),
    )
