"""The same tests of two agents, paired: whole conversations by seed, and recorded histories by their content."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from statistics import fmean
from typing import NamedTuple, final

from longspan.simulator.results.analysis.question_scores import count_questions, score_bounds
from longspan.simulator.results.analysis.statistics import Difference
from longspan.simulator.results.analysis.units import Key, Units, by_key
from longspan.simulator.results.graded_runs import GradedRun
from longspan.simulator.results.result import TestResult

__all__ = ["TestPair", "pair_tests"]


@final
class TestPair(NamedTuple):
    """A test that two agents both played, once or several times each.

    `scenario` includes the span and the tests played if there are several; `conversation` is the unit that the test belongs to (see
    `units`).
    """

    scenario: str
    conversation: Hashable
    one: Sequence[TestResult]
    other: Sequence[TestResult]
    recorded: bool = False

    @property
    def unscored(self) -> bool:
        """Whether a result of either agent has no score."""
        return any(test.score is None for test in (*self.one, *self.other))

    @property
    def scores(self) -> tuple[float, float]:
        """The mean scores of both agents; a result without a score counts as 0."""
        return fmean(test.lowest for test in self.one), fmean(test.lowest for test in self.other)

    @property
    def difference(self) -> Difference:
        """The first agent's score minus the second's."""
        one, other = self.scores
        return Difference(self.scenario, self.conversation, one - other)

    @property
    def questions(self) -> list[tuple[float, float]]:
        """The mean scores of both agents in each question of the test."""
        number = count_questions((*self.one, *self.other))
        one, other = (
            [fmean(scores) for scores in zip(*([low for low, _ in score_bounds(test, number)] for test in tests), strict=True)]
            for tests in (self.one, self.other)
        )
        return list(zip(one, other, strict=True))


def pair_tests(one: Iterable[GradedRun], other: Iterable[GradedRun], wanted: Callable[[Key], bool] = lambda key: True) -> list[TestPair]:
    """Pair the tests of two agents' runs that count and are `wanted`."""
    runs = [*one], [*other]
    mine, theirs = map(by_key, runs)
    units = Units(run.manifest for side in runs for run in side)
    shared = [key for key in mine if key in theirs and wanted(key)]
    columns, tests = {key.column for key in shared}, list(dict.fromkeys(key.played for key in shared))

    def scenario(key: Key) -> str:
        where = [str(key.column)] if len(columns) > 1 else []
        where += [f"tests {tests.index(key.played) + 1}"] if len(tests) > 1 else []
        return f"{key.scenario} ({', '.join(where)})" if where else key.scenario

    return [TestPair(scenario(key), units.of(key), mine[key], theirs[key], key.recorded is not None) for key in shared]
