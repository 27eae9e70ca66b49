"""Suites: scenarios with their parameters, in YAML; and the tests they make from a seed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, final, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from longspan.simulator.errors import InputError, first_problem, one_line
from longspan.simulator.plugins import make_scenario, scenario_class
from longspan.simulator.scenario import Scenario, Test
from longspan.simulator.script import Script

__all__ = ["Suite", "load_suite", "make_test", "make_tests", "read_setting", "read_yaml", "scenarios_in", "suites"]

SUITES = Path(__file__).parent / "suites"

ID = r"[a-z0-9][a-z0-9_-]{0,40}"
"""What a test may be called among those of its scenario."""


@final
class Suite(BaseModel):
    """Scenarios by name, each with its parameters, and how many tests of each a run plays (`each`: of those that differ), at which
    span unless told otherwise."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,40}$")
    title: str = ""
    tests: int = Field(default=3, ge=1, le=10_000)
    span: int = Field(default=2000, ge=1)
    each: dict[str, int] = {}
    scenarios: dict[str, dict[str, Any]] = Field(min_length=1)

    def changed(self, settings: Sequence[str], data: Sequence[str], only: Sequence[str], tests: int | None) -> Suite:
        """The suite as the command line wants it.

        `settings`: NAME=VALUE for every scenario that has the parameter, or SCENARIO.NAME=VALUE for one; values are YAML.
        `data`: NAME=PATH, the name that of a scenario with a parameter `data`, or of another parameter that takes a path.
        `only`: the scenarios to play, others than the suite's included. Raises InputError.
        """
        chosen = {name: self.scenarios.get(name, {}) for name in only} if only else dict(self.scenarios)
        made = {name: make_scenario(name, parameters) for name, parameters in chosen.items()}
        for setting in settings:
            name, value = read_setting(setting)
            for scenario in _holders(made, name, setting):
                chosen[scenario] = chosen[scenario] | {name.rpartition(".")[2]: value}
        takers = _takers(made)
        for pair in data:
            name, path = _pair(pair, "--data", "NAME=PATH")
            if name not in takers:
                raise InputError(f"--data {pair}: nothing here takes data called {name!r:.60}; there is {', '.join(takers) or 'none'}")
            for scenario, parameter in takers[name]:
                chosen[scenario] = chosen[scenario] | {parameter: str(Path(path).resolve())}
        return self.model_copy(update={"scenarios": chosen, "tests": tests or self.tests, "each": {} if tests else self.each})

    def counted_in(self, tokenizer: str) -> Suite:
        """The suite with the run's tokenizer as the parameter `tokenizer` of all scenarios that have one. Raises InputError."""
        chosen = dict(self.scenarios)
        for name, parameters in self.scenarios.items():
            if "tokenizer" in scenario_class(name).model_fields:
                if parameters.get("tokenizer", tokenizer) != tokenizer:
                    raise InputError(f"scenario {name}: it counts in the run's tokenizer, {tokenizer}: say --tokenizer, not the parameter")
                chosen[name] = parameters | {"tokenizer": tokenizer}
        return self.model_copy(update={"scenarios": chosen})


def suites() -> dict[str, Path]:
    """The suites that come with longspan, by name."""
    return {path.stem: path for path in sorted(SUITES.glob("*.yaml"))}


def load_suite(name: str) -> Suite:
    """A suite that comes with longspan, or one from a YAML file. Raises InputError for anything else."""
    known = suites()
    if "+" in name and all(part in known for part in name.split("+")):
        return _joined(name, [load_suite(part) for part in name.split("+")])
    path = known.get(name) or Path(name)
    if name not in known and path.suffix not in (".yaml", ".yml"):
        raise InputError(f"there is no suite {name!r:.60}; there are {', '.join(known)}, or name a .yaml file")
    content = read_yaml(path, "suite")
    if not isinstance(content, dict):
        raise InputError(f"suite {path}: holds no keys; they are {', '.join(Suite.model_fields)}")
    if content.keys() & {"suites", "agents", "spans", "seeds", "runs"}:
        raise InputError(f"suite {path}: is a file of a sweep: longspan sweep {path}")
    try:
        return Suite.model_validate(content)
    except ValidationError as error:
        known_keys = ", ".join(Suite.model_fields)
        raise InputError(f"suite {path}: {first_problem(error)}; its keys are {known_keys}") from None


def _joined(name: str, parts: Sequence[Suite]) -> Suite:
    """Suites played as one: all their scenarios, as many tests of each as there are alone, at the first one's span."""
    scenarios: dict[str, dict[str, Any]] = {}
    each: dict[str, int] = {}
    for part in parts:
        new = {scenario: parameters for scenario, parameters in part.scenarios.items() if scenario not in scenarios}
        each |= {scenario: part.each.get(scenario, part.tests) for scenario in new}
        scenarios |= new
    title = " + ".join(part.title for part in parts if part.title)
    return parts[0].model_copy(update={"name": name.replace("+", "_"), "title": title, "each": each, "scenarios": scenarios})


def read_yaml(path: Path, what: str) -> Any:
    """What a YAML file holds; `what` it is to be, for errors. Raises InputError."""
    try:
        return yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{what} {path}: cannot be read: {error.strerror}") from error
    except Exception as error:  # YAML's own errors, and what its constructors raise for values that are none
        raise InputError(f"{what} {path}: not YAML: {one_line(error)}") from error


def make_tests(suite: Suite, seed: int) -> list[Test]:
    """The tests of a run: `suite.tests` rounds of its scenarios, each round in an order of its own.

    The same suite and seed give the same tests. Raises InputError for a scenario or parameter that is wrong.
    """
    scenarios = scenarios_in(suite)
    numbers = [suite.each.get(name, suite.tests) for name in suite.scenarios]
    written = {scenario.name: _series(scenario, number, seed) for scenario, number in zip(scenarios, numbers, strict=True)}
    random = Random(f"{seed}/order")
    tests: list[Test] = []
    for number in range(max(map(len, written.values()))):
        for scenario in random.sample(scenarios, len(scenarios)):
            for id, script in written[scenario.name][number : number + 1]:
                tests.append(make_test(scenario, id, seed, len(tests), script))
    return tests


def _series(scenario: Scenario, tests: int, seed: int) -> list[tuple[str, Script]]:
    """All that a scenario writes for a run. Raises InputError."""
    try:
        found = [(id, script) for id, script in scenario.series(tests, f"{seed}/{scenario.name}")]
    except InputError:
        raise
    except Exception as error:
        where = f"scenario {scenario.name}: making its tests from seed {seed} failed"
        raise InputError(f"{where}: {one_line(error)}") from error
    names = [id for id, _ in found]
    wrong = next((id for id in names if not (isinstance(id, str) and re.fullmatch(ID, id)) or names.count(id) > 1), None)
    if wrong is not None or not found:
        what = "no test at all" if not found else f"a test called {wrong!r:.60}: twice, or not made of lower case letters, digits, _ and -"
        raise InputError(f"scenario {scenario.name}: series gave {what}")
    return found


def scenarios_in(suite: Suite) -> list[Scenario]:
    """The suite's scenarios. Raises InputError for one that is wrong, or two of one name."""
    scenarios = [make_scenario(name, parameters) for name, parameters in suite.scenarios.items()]
    names = [scenario.name for scenario in scenarios]
    if len(set(names)) < len(names):
        raise InputError(f"suite {suite.name}: two scenarios have the name {next(n for n in names if names.count(n) > 1)}")
    return scenarios


def make_test(scenario: Scenario, id: str, seed: int, order: int, script: Script | None = None) -> Test:
    """The scenario's test called `id`, with the script that it makes, unless there is one. Raises InputError."""
    test_seed = f"{seed}/{scenario.name}/{id}"
    try:
        script = scenario.make(Random(test_seed)) if script is None else script
        if not isinstance(script, Script):
            raise TypeError(f"make returned {type(script).__name__} instead of a Script")
        chance = scenario.chance(script.facts)
        if not isinstance(chance, int | float) or not 0 <= chance <= 1:
            raise ValueError(f"chance has to be a number in [0, 1], got {chance!r:.40}")
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"scenario {scenario.name}: making a test from seed {test_seed} failed: {one_line(error)}") from error
    if script.lines and type(scenario).grade is Scenario.grade and type(scenario).play is Scenario.play:
        raise InputError(f"scenario {scenario.name}: a scripted scenario has to write grade, which says what its answer is worth")
    return Test(f"{scenario.name}-{id}", scenario, script, test_seed, order)


def _pair(text: str, option: str, shape: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise InputError(f"{option} takes {shape}, got {text!r:.60}")
    return name, value


def _takers(scenarios: Mapping[str, Scenario]) -> dict[str, list[tuple[str, str]]]:
    """Scenarios and their parameters that take a path, by the name that --data has for them."""
    found: dict[str, list[tuple[str, str]]] = {}
    for scenario, made in scenarios.items():
        for parameter, field in type(made).model_fields.items():
            if Path in (field.annotation, *get_args(field.annotation)):
                found.setdefault(scenario if parameter == "data" else parameter, []).append((scenario, parameter))
    return found


def _holders(scenarios: Mapping[str, Scenario], name: str, setting: str) -> list[str]:
    """The scenarios whose parameter a setting names."""
    scenario, _, parameter = name.rpartition(".")
    among = [each for each, made in scenarios.items() if scenario in ("", each, made.name)]
    found = [each for each in among if parameter in type(scenarios[each]).model_fields]
    if not found:
        known = sorted({f"{made.name}.{field}" for made in scenarios.values() for field in type(made).model_fields})
        raise InputError(f"--set {setting}: there is no parameter {name!r}; there are {', '.join(known)}")
    return found


def read_setting(setting: str) -> tuple[str, Any]:
    """The name and the value of a --set, which is YAML where it can be. Raises InputError."""
    name, text = _pair(setting, "--set", "NAME=VALUE")
    try:
        return name, yaml.safe_load(text)
    except Exception:  # as above: what is no YAML is text
        return name, text
