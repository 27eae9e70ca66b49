"""Published test definitions: a run can play a folder of them instead of generated tests."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final, final

from longspan.simulator.base.errors import InputError, ScenarioError
from longspan.simulator.base.installed import find_entry_points
from longspan.simulator.contract.plugins import load_plugin
from longspan.simulator.contract.scenario import Test
from longspan.simulator.contract.script import Placement, Script
from longspan.simulator.suite.manifest import Manifest
from longspan.simulator.suite.suite import Suite, make_test, make_tests, scenarios_in
from longspan.simulator.suite.trust import require_trust

__all__ = ["READERS", "Definition", "Definitions", "read_definitions", "tests_for", "tests_of"]

READERS: Final = "longspan.definitions"
"""The entry-point group of readers of definitions.

A reader is a function from an existing, resolved folder to its Definitions, or to None if it does not know their format. It raises
InputError for invalid definitions.
"""


@final
@dataclass(frozen=True, slots=True)
class Definition:
    """One test. `scenario` plays and grades it. `id` is unique in the scenario (lower-case letters, digits, _ and -).

    `write` returns its script for a span in tokens, and draws everything that the definition leaves open. It raises ScenarioError if the
    script does not fit. If `write` is None, the scenario generates the test.
    """

    id: str
    scenario: str
    write: Callable[[Random, int], Script] | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Definitions:
    """The tests of a `folder`, with their `span` in tokens if it names one, and the `sha256` of all that the tests depend on."""

    folder: Path
    span: int | None
    sha256: str
    tests: Sequence[Definition]

    @property
    def max_tests(self) -> int:
        """The number of tests of the scenario that has most."""
        return max(Counter(test.scenario for test in self.tests).values(), default=0)


def read_definitions(folder: Path) -> Definitions:
    """Read the definitions in a folder with the first installed reader that knows their format. Raises InputError."""
    try:
        folder = folder.resolve()
        there = folder.is_dir()
    except (OSError, ValueError, RuntimeError):  # for example, an invalid file name or a loop of links
        there = False
    if not there:
        raise InputError(f"definitions {folder}: folder does not exist")
    names = list(find_entry_points(READERS))
    for name in names:
        reader: Any = load_plugin(READERS, "reader of definitions", name)
        definitions: Definitions | None = reader(folder)
        if definitions is not None:
            return definitions
    raise InputError(f"definitions {folder}: it has no tests in a known format; known formats are {', '.join(names) or 'none'}")


def tests_for(suite: Suite, seed: int, span: int, placement: Placement, definitions: Definitions | None) -> tuple[list[Test], list[str]]:
    """Return the tests of a run, from definitions if given or else generated, and the reasons why other tests are left out.

    The suite decides which scenarios of the definitions to play, their parameters, and the most tests of each. The order depends on the
    seed. Raises InputError.
    """
    if definitions is None:
        return make_tests(suite, seed, placement), []
    queues: dict[str, list[Definition]] = defaultdict(list)
    for definition in definitions.tests:
        queues[definition.scenario].append(definition)
    scenarios = scenarios_in(suite)
    tests: list[Test] = []
    left_out = _describe_unmatched(suite, {scenario.name for scenario in scenarios}, set(queues))
    random = Random(f"{seed}/order")
    for number in range(suite.tests):
        for scenario in random.sample(scenarios, len(scenarios)):
            for definition in queues[scenario.name][number : number + 1]:
                try:
                    random_ = Random(f"{seed}/{scenario.name}/{definition.id}/script")
                    script = definition.write(random_, span) if definition.write else None
                except ScenarioError as error:
                    left_out.append(f"{scenario.name}-{definition.id} is left out: {error}")
                else:
                    tests.append(make_test(scenario, definition.id, seed, len(tests), script, placement))
    return tests, left_out


def tests_of(manifest: Manifest) -> dict[str, Test]:
    """Return the tests of a manifest's suite and definitions by id.

    Raises InputError if the definitions have changed, and for anything that the user has not allowed (see `trust`).
    """
    require_trust(manifest, "scenarios", "sources")
    definitions = read_definitions(manifest.definitions) if manifest.definitions is not None else None
    if definitions is not None and definitions.sha256 != manifest.definitions_sha256:
        raise InputError(f"definitions {manifest.definitions}: changed since the run was made; restore them")
    return {test.id: test for test in tests_for(manifest.suite, manifest.seed, manifest.span, manifest.placement, definitions)[0]}


def _describe_unmatched(suite: Suite, played: set[str], defined: set[str]) -> list[str]:
    """Describe tests that are defined but not played, and scenarios that are to be played but not defined."""
    lines = []
    if foreign := defined - played:
        lines.append(f"the tests of {', '.join(sorted(foreign))} are left out: suite {suite.name} does not play {_them(foreign)}")
    if missing := played - defined:
        lines.append(f"{', '.join(sorted(missing))} cannot be played: the definitions have no test of {_them(missing)}")
    return lines


def _them(names: set[str]) -> str:
    return "them" if len(names) > 1 else "it"
