"""The figures at the top of a report: latency, score interval, tests without a score, failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import ceil, fsum
from typing import NamedTuple, final

from longspan.simulator.journal.run_folder import Failure, RunFolder
from longspan.simulator.pages.report.run_view import ConversationView
from longspan.simulator.results.analysis.statistics import Interval, total_interval
from longspan.simulator.results.analysis.units import observe_tests
from longspan.simulator.results.result import Result, TestResult
from longspan.simulator.suite.manifest import Manifest

__all__ = ["Figures", "Times", "further_figures", "last_failures", "reply_times", "score_interval", "without_score"]


@final
class Times(NamedTuple):
    """The number of an agent's replies and the seconds they took: in total, the median and the 95th percentile."""

    replies: int
    total: float
    median: float
    p95: float


@final
class Figures(NamedTuple):
    """A run's further figures: by scenario under the scenario's own names, and all others in words."""

    scenarios: Mapping[str, Mapping[str, float]]
    others: Mapping[str, float]


def further_figures(result: Result) -> Figures:
    """Return a run's further figures under the names that its scenarios and measures give them."""
    scenarios: dict[str, dict[str, float]] = {}
    others: dict[str, float] = {}
    for name, value in result.metrics.items():
        scenario, _, own = name.partition(": ")
        if own and scenario in result.scenarios:
            scenarios.setdefault(scenario, {})[own.replace("_", " ")] = value
        else:
            _, _, k = name.partition("evidence_recall@")
            others[f"evidence found among the first {k}" if k else name.replace("_", " ")] = value
    return Figures(scenarios, others)


def reply_times(conversations: Iterable[ConversationView]) -> Times | None:
    """Return the measured times of all replies that the agent gave; None if none was measured."""
    turns = (turn for conversation in conversations for turn in conversation.turns)
    seconds = sorted(turn.seconds for turn in turns if turn.asked and turn.seconds is not None)
    if not seconds:
        return None
    return Times(len(seconds), fsum(seconds), seconds[ceil(0.5 * len(seconds)) - 1], seconds[ceil(0.95 * len(seconds)) - 1])


def score_interval(manifest: Manifest, tests: Iterable[TestResult]) -> Interval | None:
    """Return the interval of the score over all of a run's tests, or over a scenario's tests.

    None if it cannot be estimated (see `total_interval`), or if no test has a score.
    """
    tests = [test for test in tests if test.counts]
    if all(test.score is None for test in tests):
        return None
    return total_interval(observe_tests([(manifest, tests)]))


def without_score(result: Result) -> dict[str, int]:
    """Return how many tests have no score, by status."""
    return dict(sorted(Counter(str(test.status) for test in result.tests if test.score is None).items()))


def last_failures(run: RunFolder, conversations: Mapping[str, ConversationView]) -> dict[str, Failure]:
    """Return the agent's last failure in each conversation that did not finish."""
    found = run.failures()
    return {id: failure for id, failure in found.items() if (conversation := conversations.get(id)) and not conversation.closed}
