"""Suites: scenarios with their parameters, in YAML, and the tests generated from them with a seed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Annotated, Any, Final, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from longspan.simulator.base import plain_yaml
from longspan.simulator.base.blame import at_line, is_fault
from longspan.simulator.base.errors import InputError, first_problem, one_line
from longspan.simulator.base.fields import Span, Whole
from longspan.simulator.base.files.file_io import read_packed, resolve_path
from longspan.simulator.base.installed import SCENARIOS, find_entry_points, installed_suites
from longspan.simulator.base.suggestions import similar_names, suggest
from longspan.simulator.base.terminal import quote_command
from longspan.simulator.contract.plugins import make_scenario, path_parameters, scenario_class
from longspan.simulator.contract.scenario import Scenario, Test
from longspan.simulator.contract.script import Placement, Script

__all__ = ["OF_THE_RUN", "Suite", "Tests", "load_suite", "make_test", "make_tests", "read_setting", "read_yaml", "scenarios_in", "seed_of"]

ID = r"[a-z0-9][a-z0-9_-]{0,40}"
"""The pattern of test ids within a scenario."""

OF_THE_RUN: Final = ("tokenizer", "span")
"""Parameters that take the run's value in every scenario that has them."""

MAX_BYTES: Final = 1 << 20
"""The largest YAML file to read, in bytes."""

Tests = Annotated[Whole, Field(ge=1, le=10_000)]
"""The number of tests of a scenario."""


@final
class Suite(BaseModel):
    """Scenarios by name, with their parameters.

    `tests` is the number of tests of each scenario in a run, and `each` lists exceptions by scenario. `span` is the default span in tokens.
    `reference` is BibTeX for the sources of the tests; manifests omit it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,40}$")
    title: str = ""
    tests: Tests = 3
    span: Span = 2000
    each: dict[str, Tests] = {}
    reference: str = Field(default="", max_length=10_000, exclude=True)
    scenarios: dict[str, dict[str, Any]] = Field(min_length=1)

    def apply_changes(self, settings: Sequence[str], data: Sequence[str], only: Sequence[str], tests: int | None) -> Suite:
        """Return the suite with the changes of a command line.

        `settings`: NAME=VALUE for every scenario that has the parameter, or SCENARIO.NAME=VALUE for one. Values are YAML. `data`:
        NAME=PATH, where NAME is a scenario with a parameter `data`, or another parameter that takes a path. `only`: the scenarios to play,
        which may include some that the suite lacks. Raises InputError.
        """
        chosen = {name: self.scenarios.get(name, {}) for name in only} if only else dict(self.scenarios)
        instances = {name: make_scenario(name, parameters) for name, parameters in chosen.items()}
        for setting in settings:
            name, value = read_setting(setting)
            for scenario in _holders(instances, name, setting):
                chosen[scenario] = chosen[scenario] | {name.rpartition(".")[2]: value}
        takers = _takers(instances)
        for pair in data:
            name, path = _pair(pair, "--data", "NAME=PATH")
            if name not in takers:
                raise InputError(f"--data {pair}: no scenario of {self.name} takes data called {name!r:.60}{_data_meant(name, takers)}")
            for scenario, parameter in takers[name]:
                chosen[scenario] = chosen[scenario] | {parameter: str(resolve_path(Path(path)))}
        return self.model_copy(update={"scenarios": chosen, "tests": tests or self.tests, "each": {} if tests else self.each})

    def paths(self) -> dict[str, Path]:
        """Return the paths among the scenarios' parameters, by scenario and parameter (`locomo.data`). Raises InputError."""
        return {
            f"{scenario}.{name}": Path(parameters[name])
            for scenario, parameters in self.scenarios.items()
            for name in sorted(path_parameters(scenario_class(scenario)))
            if parameters.get(name) is not None
        }

    def with_run_settings(self, tokenizer: str, span: int) -> Suite:
        """Return the suite with the run's `tokenizer` and `span` in all scenarios that have such a parameter. Raises InputError."""
        chosen = dict(self.scenarios)
        for name, parameters in self.scenarios.items():
            fields = scenario_class(name).model_fields
            own = {key: value for key, value in zip(OF_THE_RUN, (tokenizer, span), strict=True) if key in fields}
            if wrong := next((key for key, value in own.items() if parameters.get(key, value) != value), None):
                raise InputError(f"scenario {name}: it uses the run's {wrong}, {own[wrong]}; use --{wrong} instead of the parameter")
            chosen[name] = parameters | own
        return self.model_copy(update={"scenarios": chosen})


def _data_meant(name: str, takers: Iterable[str]) -> str:
    """Return a hint: the data that a suite takes, or the other suite that takes data of this name."""
    if name in installed_suites():
        return f"; did you mean the suite {name}: {quote_command('longspan', 'run', name)} --data ...?"
    return suggest(name, takers, f"known names: {', '.join(takers) or 'none'}")


def load_suite(name: str) -> Suite:
    """Load one of longspan's own suites, several joined by +, or a YAML file. Raises InputError."""
    known = installed_suites()
    names = name.split("+")
    if len(names) > 1 and all(name in known for name in names):
        return _join_suites(name, [load_suite(name) for name in names])
    path = known.get(name) or Path(name)
    if name not in known and path.suffix not in (".yaml", ".yml"):
        if name in find_entry_points(SCENARIOS):
            raise InputError(f"{name!r:.60} is a scenario, not a suite: {quote_command('longspan', 'run', '--scenario', name)}")
        if wrong := [part for part in names if part not in known] if len(names) > 1 else []:
            near = [part if part in known else "".join(similar_names(part, known)[:1]) for part in names]
            likely = f"did you mean {'+'.join(near)}?" if all(near) else f"there are {', '.join(known)}"
            raise InputError(f"there is no suite {wrong[0]!r:.60}; {likely}")
        there_are = f"there are {', '.join(known)}, or give a .yaml file"
        raise InputError(f"there is no suite {name!r:.60}{suggest(name, known, there_are)}")
    content = read_yaml(path, "suite")
    if not isinstance(content, dict):
        raise InputError(f"suite {path}: expected the keys {', '.join(Suite.model_fields)}")
    if content.keys() & {"suites", "agents", "spans", "seeds", "runs"}:
        raise InputError(f"suite {path}: this is a sweep file; run `{quote_command('longspan', 'sweep', path)}`")
    try:
        return Suite.model_validate(content)
    except ValidationError as error:
        known_keys = ", ".join(Suite.model_fields)
        raise InputError(f"suite {path}: {first_problem(error)}; its keys are {known_keys}") from None


def _join_suites(name: str, joined: Sequence[Suite]) -> Suite:
    """Join suites: all their scenarios, with each suite's number of tests, at the first suite's span."""
    scenarios: dict[str, dict[str, Any]] = {}
    each: dict[str, int] = {}
    for suite in joined:
        new = {scenario: parameters for scenario, parameters in suite.scenarios.items() if scenario not in scenarios}
        each |= {scenario: suite.each.get(scenario, suite.tests) for scenario in new}
        scenarios |= new
    title = " + ".join(suite.title for suite in joined if suite.title)
    return joined[0].model_copy(update={"name": name.replace("+", "_"), "title": title, "each": each, "scenarios": scenarios})


def read_yaml(path: Path, what: str) -> Any:
    """Read a YAML file. `what` names its expected content in errors. Raises InputError."""
    try:
        return plain_yaml.load_yaml(read_packed(path, MAX_BYTES))
    except InputError as error:
        raise InputError(f"{what} {error}") from error
    except Exception as error:  # YAML errors, and errors of any type from constructors of invalid values
        raise InputError(f"{what} {path}: not YAML: {plain_yaml.describe_yaml_error(error)}") from error


def make_tests(suite: Suite, seed: int, placement: Placement) -> list[Test]:
    """Create the tests of a run: `suite.tests` rounds of its scenarios, each round in a different order.

    The same suite, seed and placement give the same tests. Raises InputError for an invalid scenario or parameter.
    """
    scenarios = scenarios_in(suite)
    numbers = [suite.each.get(name, suite.tests) for name in suite.scenarios]
    series = {scenario.name: _series(scenario, number, seed) for scenario, number in zip(scenarios, numbers, strict=True)}
    random = Random(f"{seed}/order")
    tests: list[Test] = []
    for number in range(max(map(len, series.values()))):
        for scenario in random.sample(scenarios, len(scenarios)):
            for id, script in series[scenario.name][number : number + 1]:
                tests.append(make_test(scenario, id, seed, len(tests), script, placement))
    return tests


def _series(scenario: Scenario, tests: int, seed: int) -> list[tuple[str, Script]]:
    """Return the ids and scripts of a scenario's tests for a run. Raises InputError."""
    try:
        series = [(id, script) for id, script in scenario.series(tests, f"{seed}/{scenario.name}")]
    except InputError:
        raise
    except BaseException as error:
        if not is_fault(error):
            raise
        where = f"scenario {scenario.name}: making its tests from seed {seed} failed"
        raise InputError(f"{where}: {one_line(error)}{at_line(error, type(scenario))}") from error
    ids = [id for id, _ in series]
    if not ids:
        raise InputError(f"scenario {scenario.name}: series returned no tests")
    odd = [id for id in ids if not (isinstance(id, str) and re.fullmatch(ID, id))]
    if invalid := odd or [id for id, count in Counter(ids).items() if count > 1]:
        rule = "ids must be unique and consist of lower case letters, digits, _ and -"
        raise InputError(f"scenario {scenario.name}: series returned the test id {invalid[0]!r:.60}; {rule}")
    return series


def scenarios_in(suite: Suite) -> list[Scenario]:
    """Create the suite's scenarios. Raises InputError for an invalid one, or for two with the same name."""
    scenarios = [make_scenario(name, parameters) for name, parameters in suite.scenarios.items()]
    names = [scenario.name for scenario in scenarios]
    if len(set(names)) < len(names):
        raise InputError(f"suite {suite.name}: two scenarios have the name {next(n for n in names if names.count(n) > 1)}")
    return scenarios


def make_test(scenario: Scenario, id: str, seed: int, order: int, script: Script | None = None, placement: Placement = "uniform") -> Test:
    """Create a scenario's test from `script` or from a new script, with a place in the span for each segment.

    Raises InputError.
    """
    test_seed = seed_of(seed, scenario.name, id)
    try:
        script = scenario.make(Random(test_seed)) if script is None else script
        if not isinstance(script, Script):
            raise TypeError(f"make returned {type(script).__name__} instead of a Script")
        chance = scenario.chance(script.facts)
        if not isinstance(chance, int | float) or not 0 <= chance <= 1:
            raise ValueError(f"chance must be a number in [0, 1], got {chance!r:.40}")
    except InputError:
        raise
    except BaseException as error:
        if not is_fault(error):
            raise
        why = f"{one_line(error)}{at_line(error, type(scenario))}"
        raise InputError(f"scenario {scenario.name}: making a test from seed {test_seed} failed: {why}") from error
    if script.lines and type(scenario).grade is Scenario.grade and type(scenario).play is Scenario.play:
        raise InputError(f"scenario {scenario.name}: a scripted scenario must override grade")
    placed = script.placed(placement, Random(f"{test_seed}/places"))
    return Test(f"{scenario.name}-{id}", scenario, placed, test_seed, order)


def seed_of(seed: int, scenario: str, id: str) -> str:
    """Return the seed of a scenario's test in a run with this seed."""
    return f"{seed}/{scenario}/{id}"


def _pair(text: str, option: str, shape: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise InputError(f"{option} expects {shape}, got {text!r:.60}")
    return name, value


def _takers(scenarios: Mapping[str, Scenario]) -> dict[str, list[tuple[str, str]]]:
    """Return the (scenario, parameter) pairs that take a path, by their name in --data: `data` has its scenario's, `NAME_file` is NAME."""
    takers: dict[str, list[tuple[str, str]]] = {}
    for scenario, instance in scenarios.items():
        for parameter in sorted(path_parameters(type(instance))):
            takers.setdefault(scenario if parameter == "data" else parameter.removesuffix("_file"), []).append((scenario, parameter))
    return takers


def _holders(scenarios: Mapping[str, Scenario], name: str, setting: str) -> list[str]:
    """Return the keys of the scenarios that have the parameter `name`, which may be PARAMETER or SCENARIO.PARAMETER."""
    scenario_name, _, parameter = name.rpartition(".")
    holders = [
        key for key, scenario in scenarios.items() if scenario_name in ("", key, scenario.name) and parameter in type(scenario).model_fields
    ]
    if not holders:
        known = sorted({f"{scenario.name}.{field}" for scenario in scenarios.values() for field in type(scenario).model_fields})
        near = suggest(parameter, sorted({each.rpartition(".")[2] for each in known}), f"there are {', '.join(known)}")
        raise InputError(f"--set {setting}: there is no parameter {name!r:.60}{near}")
    return holders


def read_setting(setting: str) -> tuple[str, Any]:
    """Parse a --set into a name and a value, which is YAML or else text. Raises InputError."""
    name, text = _pair(setting, "--set", "NAME=VALUE")
    try:
        return name, plain_yaml.load_yaml(text)
    except Exception:  # errors of any type, as in read_yaml; anything that is not YAML is text
        return name, text
