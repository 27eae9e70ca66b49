"""The same tests of two agents, paired: whole conversations by seed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from statistics import fmean
from typing import NamedTuple, final

from longspan.simulator.analysis.comparable import key_in, played
from longspan.simulator.analysis.graded_runs import Column, Graded
from longspan.simulator.analysis.statistics import Difference
from longspan.simulator.grading.grades import TestResult
from longspan.simulator.manifest import Manifest

__all__ = ["Key", "Paired", "keys", "paired"]


@final
class Key(NamedTuple):
    """What makes a test the same in the runs of two agents: equal where both play the same tests at the same span from the same seed.

    `played`: the suite, scenarios and parameters of its run (see `comparable.played`). Tests that branch from one conversation are
    taken for tests of that conversation, `root`.
    """

    suite: str
    played: str
    column: Column
    seed: int
    root: str
    scenario: str
    test: Hashable

    @property
    def conversation(self) -> Hashable:
        return self[:5]


@final
class Paired(NamedTuple):
    """A test that two agents have both had, once or several times each. `scenario` has the span and the tests that are played if there
    are several."""

    scenario: str
    conversation: Hashable
    one: Sequence[TestResult]
    other: Sequence[TestResult]

    @property
    def unscored(self) -> bool:
        """Whether a result of either agent has no score."""
        return any(test.score is None for test in (*self.one, *self.other))

    @property
    def scores(self) -> tuple[float, float]:
        """The mean scores of both; what has no score counts as 0."""
        return fmean(test.lowest for test in self.one), fmean(test.lowest for test in self.other)

    @property
    def difference(self) -> Difference:
        """By how much the first agent's score is higher."""
        one, other = self.scores
        return Difference(self.scenario, self.conversation, one - other)


def keys(manifest: Manifest) -> dict[str, Key]:
    """Return the keys of the tests of a run with this manifest, by their ids."""
    name, tests, column = manifest.suite.name, played(manifest), Column.of(manifest)
    return {
        planned.id: Key(name, tests, column, manifest.seed, manifest.roots[planned.id], planned.scenario, key_in(manifest, planned.id))
        for _, planned in manifest.graded
    }


def paired(one: Iterable[Graded], other: Iterable[Graded], wanted: Callable[[Key], bool] = lambda key: True) -> list[Paired]:
    """Pair the tests that count of two agents' runs, those that are `wanted`."""
    mine, theirs = _by_key(one), _by_key(other)
    shared = [key for key in mine if key in theirs and wanted(key)]
    columns, tests = {key.column for key in shared}, list(dict.fromkeys(key.played for key in shared))

    def scenario(key: Key) -> str:
        where = [str(key.column)] if len(columns) > 1 else []
        where += [f"tests {tests.index(key.played) + 1}"] if len(tests) > 1 else []
        return f"{key.scenario} ({', '.join(where)})" if where else key.scenario

    return [Paired(scenario(key), key.conversation, mine[key], theirs[key]) for key in shared]


def _by_key(runs: Iterable[Graded]) -> dict[Key, list[TestResult]]:
    tests: dict[Key, list[TestResult]] = {}
    for run in runs:
        known = keys(run.manifest)
        for test in run.result.tests:
            if test.counts:
                tests.setdefault(known[test.id], []).append(test)
    return tests
