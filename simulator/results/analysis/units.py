"""The independent units: a conversation, or a recorded history regardless of repetitions.

Different seeds make different conversations, which are independent. A recorded history is the same for every seed: playing it again shows
how much an agent varies, but nothing about other histories. All code that counts conversations counts units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final, final
from weakref import finalize

from longspan.simulator.results.analysis.comparable import played_key
from longspan.simulator.results.analysis.distances import Point, graded_points
from longspan.simulator.results.analysis.question_scores import count_questions, score_bounds
from longspan.simulator.results.analysis.statistics import ObservedTest
from longspan.simulator.results.graded_runs import Column, GradedRun
from longspan.simulator.results.result import TestResult
from longspan.simulator.suite.manifest import Manifest, PlannedTest

__all__ = [
    "Key",
    "Units",
    "advise_generalising",
    "by_key",
    "describe_repeats",
    "observe_questions",
    "observe_tests",
    "results_by_key",
    "test_keys",
]


@final
@dataclass(frozen=True, slots=True)
class Key:
    """The identity of a test across runs.

    Keys are equal if the runs play the same tests in the same column. The seed must be the same as well, unless the test is about a
    recorded history.

    `played`: the suite, scenarios and parameters of the run (see `comparable.played_key`). `conversation`: where the test is played; tests
    that branch off one conversation count as tests of that conversation. `recorded`: the recorded history that it is about, or None if the
    seed makes it.
    """

    suite: str
    played: str
    column: Column
    scenario: str
    test: Hashable
    conversation: Hashable = field(compare=False)
    recorded: str | None = field(compare=False)


@final
class Units:
    """The units of some runs' tests: conversations, joined where several of them play the same recorded history."""

    def __init__(self, manifests: Iterable[Manifest]) -> None:
        self._above: dict[Hashable, Hashable] = {}
        for key in (key for manifest in manifests for key in test_keys(manifest).values()):
            self._add(key.conversation)
            if key.recorded is not None:
                self._add(key.recorded)
                self._above[self._top(key.conversation)] = self._top(key.recorded)
        # Sorted, so that names do not depend on the order of the runs.
        self._names: dict[Hashable, str] = {}
        for number, member in enumerate(sorted(self._above, key=repr)):
            self._names.setdefault(self._top(member), f"{number:06}")

    def of(self, key: Key) -> str:
        """Return the unit of one of the tests."""
        return self._names[self._top(key.conversation)]

    def _add(self, member: Hashable) -> None:
        self._above.setdefault(member, member)

    def _top(self, member: Hashable) -> Hashable:
        while (above := self._above[member]) != member:
            self._above[member] = self._above[above]
            member = above
        return member


def test_keys(manifest: Manifest) -> Mapping[str, Key]:
    """Return the keys of the tests of a run with this manifest, by id. They are cached: a comparison asks for them many times."""
    here = id(manifest)
    if here not in _made:
        _made[here] = _keys(manifest)
        finalize(manifest, _made.pop, here).atexit = False
    return _made[here]


_made: Final[dict[int, Mapping[str, Key]]] = {}
"""The keys of manifests in use, by identity."""


def _keys(manifest: Manifest) -> Mapping[str, Key]:
    name, tests, column = manifest.suite.name, played_key(manifest), Column.of(manifest)
    made = (manifest.definitions_sha256, manifest.versions.get("longspan"))
    found = {}
    for _, planned in manifest.graded:
        recorded = _recorded_history(manifest, planned)
        origin: Hashable = manifest.seed if recorded is None else recorded
        conversation = (name, tests, column, manifest.seed, manifest.roots[planned.id], made)
        found[planned.id] = Key(name, tests, column, planned.scenario, (origin, planned.id, made), conversation, recorded)
    return found


def _recorded_history(manifest: Manifest, planned: PlannedTest) -> str | None:
    """Return the identity of the recorded history that a test is about.

    If the run or scenario does not record it, the data identify it, if they form one history.
    """
    if planned.recorded is not None:
        return planned.recorded
    if manifest.definitions_sha256 is not None:
        return f"{manifest.definitions_sha256}/{planned.id}"
    data = manifest.suite.scenarios.get(planned.scenario, {}).get("data")
    return None if data is None else f"{manifest.data.get(f'{planned.scenario}.data', data)}/{planned.trunk or ''}"


def advise_generalising(manifests: Iterable[Manifest]) -> str:
    """Return how to generalise the result of one conversation. Other seeds do not help if all tests are about recorded histories."""
    recorded = all(key.recorded is not None for manifest in manifests for key in test_keys(manifest).values())
    return "add histories or questions to generalise" if recorded else "add seeds to generalise"


def by_key(runs: Iterable[GradedRun]) -> dict[Key, list[TestResult]]:
    """Return the results of the tests that count, one or several for each key."""
    return results_by_key((run.manifest, run.result.tests) for run in runs)


def results_by_key(runs: Iterable[tuple[Manifest, Iterable[TestResult]]]) -> dict[Key, list[TestResult]]:
    """Return the same for tests without a `GradedRun`."""
    found: dict[Key, list[TestResult]] = {}
    for manifest, tests in runs:
        known = test_keys(manifest)
        for test in tests:
            if test.counts and test.id in known:
                found.setdefault(known[test.id], []).append(test)
    return found


def describe_repeats(runs: Iterable[GradedRun]) -> list[str]:
    """Return a sentence if an agent has played a recorded history several times."""
    counts: Counter[tuple[str, Key]] = Counter()
    histories: set[str] = set()
    for run in runs:
        for key in test_keys(run.manifest).values():
            if key.recorded is not None:
                counts[run.agent, key] += 1
                histories.add(key.recorded)
    if max(counts.values(), default=1) == 1:
        return []
    several = f"{len(histories):,} recorded {'history is' if len(histories) == 1 else 'histories are'} played several times"
    return [f"{several}: other seeds and repetitions do not generalise to other histories, so each counts once, by the mean of its results"]


def observe_tests(runs: Iterable[tuple[Manifest, Iterable[TestResult]]]) -> list[ObservedTest]:
    """Return the tests of runs that count, with their units.

    A test that was played several times counts with its mean, because repetitions are not separate tests. With several units, each question
    of a test of plain facts counts like a test.
    """
    played = list(runs)
    units = Units(manifest for manifest, _ in played)
    by_test = [(key.scenario, units.of(key), results) for key, results in results_by_key(played).items()]
    # A single unit gets no interval from its questions: they cannot show how much conversations differ.
    several = len({unit for _, unit, _ in by_test}) > 1
    return [
        ObservedTest(scenario, unit, fmean(low for low, _ in same), fmean(high for _, high in same))
        for scenario, unit, results in by_test
        for number in [count_questions(results) if several else 1]
        for same in zip(*(score_bounds(test, number) for test in results), strict=True)
    ]


def observe_questions(runs: Iterable[tuple[Manifest, Iterable[TestResult]]]) -> list[Point]:
    """Return the graded questions of runs' tests, with units as their conversations."""
    played = list(runs)
    units = Units(manifest for manifest, _ in played)
    return [
        point._replace(conversation=units.of(known[point.test]))
        for manifest, tests in played
        for known in [test_keys(manifest)]
        for point in graded_points(tests, Column.of(manifest).span)
    ]
