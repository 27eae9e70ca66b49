"""What is independent: a conversation, or a recorded history however often it is played.

Seeds make other conversations, and what one of them tells says nothing of the next. A recorded history is the same from every seed, so
that to play it again tells how much an agent varies, and nothing of other histories. Whatever counts conversations counts units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from statistics import fmean
from typing import final

from longspan.simulator.analysis.comparable import played
from longspan.simulator.analysis.distances import Point, points
from longspan.simulator.analysis.statistics import Observed
from longspan.simulator.results.graded_runs import Column, Graded
from longspan.simulator.results.result import TestResult
from longspan.simulator.suite.manifest import Manifest, PlannedTest

__all__ = ["Key", "Units", "by_key", "keys", "observed", "placed", "repeated"]


@final
@dataclass(frozen=True, slots=True)
class Key:
    """What makes a test the same in several runs: equal where they play the same tests in the same column, from the same seed unless the
    test is of a recorded history.

    `played`: the suite, scenarios and parameters of its run (see `comparable.played`). `conversation`: where it is played; tests that
    branch from one conversation are taken for tests of that. `recorded`: the recorded history that it is about, None if the seed makes
    it.
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
    """The units of the tests of some runs: conversations, joined where a recorded history is played in several of them."""

    def __init__(self, manifests: Iterable[Manifest]) -> None:
        self._above: dict[Hashable, Hashable] = {}
        for key in (key for manifest in manifests for key in keys(manifest).values()):
            self._add(key.conversation)
            if key.recorded is not None:
                self._add(key.recorded)
                self._above[self._top(key.conversation)] = self._top(key.recorded)
        # whatever the order of the runs, they have the same names
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


def keys(manifest: Manifest) -> dict[str, Key]:
    """Return the keys of the tests of a run with this manifest, by their ids."""
    name, tests, column = manifest.suite.name, played(manifest), Column.of(manifest)
    made = (manifest.definitions_sha256, manifest.versions.get("longspan"))
    found = {}
    for _, planned in manifest.graded:
        recorded = _recorded(manifest, planned)
        origin: Hashable = manifest.seed if recorded is None else recorded
        conversation = (name, tests, column, manifest.seed, manifest.roots[planned.id], made)
        found[planned.id] = Key(name, tests, column, planned.scenario, (origin, planned.id, made), conversation, recorded)
    return found


def _recorded(manifest: Manifest, planned: PlannedTest) -> str | None:
    """Return what tells recorded histories apart. Of runs and of scenarios that do not say, it is the data, as far as that is told as
    one."""
    if planned.recorded is not None:
        return planned.recorded
    if manifest.definitions_sha256 is not None:
        return f"{manifest.definitions_sha256}/{planned.id}"
    data = manifest.suite.scenarios.get(planned.scenario, {}).get("data")
    return None if data is None else f"{manifest.data.get(f'{planned.scenario}.data', data)}/{planned.trunk or ''}"


def by_key(runs: Iterable[Graded]) -> dict[Key, list[TestResult]]:
    """Return the results of the tests that count, one or several for each."""
    return _by_key((run.manifest, run.result.tests) for run in runs)


def _by_key(runs: Iterable[tuple[Manifest, Iterable[TestResult]]]) -> dict[Key, list[TestResult]]:
    found: dict[Key, list[TestResult]] = {}
    for manifest, tests in runs:
        known = keys(manifest)
        for test in tests:
            if test.counts and test.id in known:
                found.setdefault(known[test.id], []).append(test)
    return found


def repeated(runs: Iterable[Graded]) -> list[str]:
    """Return a sentence if an agent has played a recorded history several times."""
    counts: Counter[tuple[str, Key]] = Counter()
    histories: set[str] = set()
    for run in runs:
        for key in keys(run.manifest).values():
            if key.recorded is not None:
                counts[run.agent, key] += 1
                histories.add(key.recorded)
    if max(counts.values(), default=1) == 1:
        return []
    several = f"{len(histories):,} recorded {'history is' if len(histories) == 1 else 'histories are'} played several times"
    return [f"{several}: other seeds and repetitions tell nothing of other histories, so that each counts once, by the mean of its results"]


def observed(runs: Iterable[tuple[Manifest, Iterable[TestResult]]]) -> list[Observed]:
    """Return tests of runs, those that count, with their units. Of a test that was played several times the mean counts: repetitions are
    no other tests."""
    played = list(runs)
    units = Units(manifest for manifest, _ in played)
    return [
        Observed(key.scenario, units.of(key), fmean(test.lowest for test in results), fmean(test.highest for test in results))
        for key, results in _by_key(played).items()
    ]


def placed(runs: Iterable[tuple[Manifest, Iterable[TestResult]]]) -> list[Point]:
    """Return the graded questions of tests of runs, with units for conversations."""
    played = list(runs)
    units = Units(manifest for manifest, _ in played)
    return [
        point._replace(conversation=units.of(known[point.test]))
        for manifest, tests in played
        for known in [keys(manifest)]
        for point in points(tests, Column.of(manifest).span)
    ]
