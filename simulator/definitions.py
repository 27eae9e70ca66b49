"""Tests that somebody has written down: a folder of them is played instead of generated tests."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final, final

from longspan.simulator.errors import InputError, ScenarioError
from longspan.simulator.manifest import Manifest
from longspan.simulator.plugins import installed, load
from longspan.simulator.scenario import Test
from longspan.simulator.script import Script
from longspan.simulator.suite import Suite, make_test, make_tests, scenarios_in

__all__ = ["READERS", "Definition", "Definitions", "read_definitions", "tests_for", "tests_of"]

READERS: Final = "longspan.definitions"
"""The entry-point group of those who read definitions: its name, and a function from a folder (resolved, there) to its
Definitions, or to None where it knows nothing of their form. It raises InputError for what is wrong in them."""


@final
@dataclass(frozen=True, slots=True)
class Definition:
    """One test: `scenario` plays and grades it, `id` tells it from the scenario's others (lower case, digits, _ and -).

    `write` gives its script for a span in tokens, and raises ScenarioError where it does not fit in; the random numbers
    are for what the definition leaves open. None: the scenario makes a test of its own.
    """

    id: str
    scenario: str
    write: Callable[[Random, int], Script] | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Definitions:
    """The tests of a `folder`: `span` in tokens if it names one, `sha256` over all that the tests depend on."""

    folder: Path
    span: int | None
    sha256: str
    tests: Sequence[Definition]

    @property
    def most(self) -> int:
        """How many tests the scenario has that has most."""
        return max(Counter(each.scenario for each in self.tests).values(), default=0)


def read_definitions(folder: Path) -> Definitions:
    """The definitions in a folder, by the first installed reader that knows their form. Raises InputError."""
    try:
        folder = folder.resolve()
        there = folder.is_dir()
    except (OSError, ValueError, RuntimeError):  # a name that no file can have, a loop of links
        there = False
    if not there:
        raise InputError(f"definitions {folder}: there is no such folder")
    names = list(installed(READERS))
    for name in names:
        reader: Any = load(READERS, "reader of definitions", name)
        found: Definitions | None = reader(folder)
        if found is not None:
            return found
    raise InputError(f"definitions {folder}: it holds no tests in a form that is known; known are {', '.join(names) or 'none'}")


def tests_for(suite: Suite, seed: int, span: int, definitions: Definitions | None) -> tuple[list[Test], list[str]]:
    """The tests of a run, and why others are left out: those that are defined, or else those that the suite makes.

    Of what is defined, the suite says which scenarios are played, with which parameters, and at most how many tests of
    each. The order is the seed's. Raises InputError.
    """
    if definitions is None:
        return make_tests(suite, seed), []
    queues: dict[str, list[Definition]] = defaultdict(list)
    for each in definitions.tests:
        queues[each.scenario].append(each)
    scenarios = scenarios_in(suite)
    tests: list[Test] = []
    left_out = _unmatched(suite, {scenario.name for scenario in scenarios}, set(queues))
    random = Random(f"{seed}/order")
    for number in range(suite.tests):
        for scenario in random.sample(scenarios, len(scenarios)):
            for each in queues[scenario.name][number : number + 1]:
                try:
                    script = each.write(Random(f"{seed}/{scenario.name}/{each.id}/script"), span) if each.write else None
                except ScenarioError as error:
                    left_out.append(f"{scenario.name}-{each.id} is left out: {error}")
                else:
                    tests.append(make_test(scenario, each.id, seed, len(tests), script))
    return tests, left_out


def tests_of(manifest: Manifest) -> dict[str, Test]:
    """The tests that a manifest's suite and definitions make, by id. Raises InputError where the definitions have changed."""
    definitions = read_definitions(manifest.definitions) if manifest.definitions is not None else None
    if definitions is not None and definitions.sha256 != manifest.definitions_sha256:
        raise InputError(f"definitions {manifest.definitions}: not those that the run was made with")
    return {test.id: test for test in tests_for(manifest.suite, manifest.seed, manifest.span, definitions)[0]}


def _unmatched(suite: Suite, played: set[str], defined: set[str]) -> list[str]:
    """What is defined and not played, and the other way round."""
    lines = []
    if foreign := defined - played:
        lines.append(f"the tests of {', '.join(sorted(foreign))} are left out: suite {suite.name} does not play {_them(foreign)}")
    if missing := played - defined:
        lines.append(f"{', '.join(sorted(missing))} cannot be played: the definitions have no test of {_them(missing)}")
    return lines


def _them(names: set[str]) -> str:
    return "them" if len(names) > 1 else "it"
