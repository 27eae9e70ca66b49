"""Descriptions of how a run's settings differ from its suite's defaults, in words and as a command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

from longspan.simulator.base.errors import InputError
from longspan.simulator.base.installed import installed_suites
from longspan.simulator.base.terminal import quote_command
from longspan.simulator.suite.manifest import Manifest
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import OF_THE_RUN, Suite, load_suite

__all__ = [
    "SHOWN_SHA256",
    "command_of",
    "data_of",
    "has_changed_tests",
    "list_changed_options",
    "list_changed_parameters",
    "list_chosen_scenarios",
    "reach_of",
]

MAX_CHARS: Final = 60
"""The characters shown of a value."""

SHOWN_SHA256: Final = 12
"""The characters shown of a SHA-256."""

LEAST_REACH: Final = 500
"""The shortest span, in tokens, of the suite `reach`."""

OPTIONS: Final = (
    "placement",
    "tokenizer",
    "filler",
    "filler_size",
    "definitions",
    "starts_at",
    "pace_s",
    "judge",
    "branch",
    "twins",
    "lesion",
    "control",
)
"""Settings that are listed with their value if it is not the default."""


FLAGS: Final = {
    "agent": "--agent",
    "seed": "--seed",
    "placement": "--placement",
    "isolated": "--isolated",
    "control": "--experiment control",
    "tokenizer": "--tokenizer",
    "filler": "--filler",
    "filler_size": "--filler-size",
    "definitions": "--definitions",
    "starts_at": "--starts-at",
    "pace_s": "--pace",
    "judge": "--judge",
    "branch": "--branch",
    "label": "--label",
    "nights": "--nights",
    "score_farewells": "--score-farewells",
}
"""The options for the same tests in a command, by the settings that they set."""


def list_chosen_scenarios(manifest: Manifest) -> list[str]:
    """Return the scenarios of a run, unless they are exactly the scenarios of its suite."""
    usual = _usual(manifest.suite.name)
    scenarios = list(manifest.suite.scenarios)
    return scenarios if usual is not None and set(scenarios) != set(usual.scenarios) else []


def list_changed_options(manifest: Manifest, *, tests: bool = True) -> list[str]:
    """Return the options changed on the command line, except suite, span, seed, agent and scenarios. Without `tests`, leave out the number
    of tests as well."""
    found = ["isolated"] if manifest.isolated else []
    found += ["imported"] if manifest.imported is not None else []
    defaults = RunSettings.model_fields
    values = {name: getattr(manifest, name) for name in OPTIONS}
    found += [name if value is True else f"{name} {_short(value)}" for name, value in values.items() if value != defaults[name].default]
    if tests and has_changed_tests(manifest):
        found.append(f"{manifest.suite.tests:,} {'test' if manifest.suite.tests == 1 else 'tests'} each")
    return [*found, *list_changed_parameters(manifest)]


def has_changed_tests(manifest: Manifest) -> bool:
    """Return whether a suite that comes with longspan is played with more or fewer tests of each scenario than usual."""
    usual = _usual(manifest.suite.name)
    return usual is not None and manifest.suite.tests != usual.tests


def list_changed_parameters(manifest: Manifest) -> list[str]:
    """Return the scenarios' parameters that were changed, with the SHA-256 of data. For a suite that does not come with longspan, return
    data alone."""
    return list(_describe_changes(manifest, _usual(manifest.suite.name)))


def data_of(manifest: Manifest) -> list[str]:
    """Return the data behind a run's tests: each parameter with the name of the file or folder, and its SHA-256."""
    return [f"{parameter} {_name_file(manifest.named(parameter), sha256)}" for parameter, sha256 in manifest.data.items()]


def command_of(manifest: Manifest, **changes: Any) -> str:
    """Return the command that plays a run's tests, with `changes` of its settings (`tests` is the number of each scenario).

    Experiments are left out unless they are among the changes. The command is empty if the run was imported, or if its suite comes from a
    file.
    """
    usual = _usual(manifest.suite.name)
    if usual is None or manifest.imported is not None:
        return ""
    suite = manifest.suite
    given = {name: getattr(manifest, name) for name in FLAGS} | {"control": False, "tests": suite.tests} | changes
    words: list[object] = ["longspan", "run", suite.name, "--span", _size(manifest.span), "--agent", given["agent"]]
    words += [word for name in list_chosen_scenarios(manifest) for word in ("--scenario", name)]
    words += ["--tests", given["tests"]] * (given["tests"] != usual.tests or suite.each != usual.each)
    defaults: dict[str, Any] = {name: field.default for name, field in RunSettings.model_fields.items()} | {"agent": None}
    for name, option in FLAGS.items():
        value = given.get(name, defaults[name])
        if name == "agent" or value == defaults[name]:
            continue
        words += option.split() if value is True else [option, value.isoformat() if isinstance(value, datetime) else value]
    for scenario, parameters in suite.scenarios.items():
        known = usual.scenarios.get(scenario, {})
        for name, value in parameters.items():
            if name not in OF_THE_RUN and known.get(name) != value:
                words += ["--set", f"{scenario}.{name}={json.dumps(value, ensure_ascii=False, default=str)}"]
    return quote_command(*words)


def reach_of(manifest: Manifest) -> str:
    """Return the command that measures how far back a run's agent remembers plain facts, at the run's span."""
    return quote_command("longspan", "run", "reach", "--agent", manifest.agent, "--span", _size(max(manifest.span, LEAST_REACH)))


def _size(tokens: int) -> str:
    return f"{tokens // 1000}k" if tokens % 1000 == 0 else str(tokens)


def _name_file(path: str, sha256: str) -> str:
    return f"{_short(Path(path).name)} (SHA-256 {sha256[:SHOWN_SHA256]})"


def _describe_changes(manifest: Manifest, usual: Suite | None) -> Iterator[str]:
    scenarios = manifest.suite.scenarios
    for scenario, parameters in scenarios.items():
        known = usual.scenarios.get(scenario, {}) if usual is not None else parameters
        for name, value in parameters.items():
            sha256 = manifest.data.get(f"{scenario}.{name}")
            if name not in OF_THE_RUN and (sha256 or known.get(name) != value):
                told = _name_file(str(value), sha256) if sha256 else _short(value)
                yield f"{f'{scenario}.' if len(scenarios) > 1 else ''}{name} {told}"


def _short(value: Any) -> str:
    text = f"{value:,}" if type(value) is int else str(value)
    return text if len(text) <= MAX_CHARS else f"{text[: MAX_CHARS - 1]}…"


@cache
def _usual(name: str) -> Suite | None:
    """Return longspan's suite of this name; None if that is unknown."""
    try:
        return load_suite(name) if name in installed_suites() else None
    except InputError:
        return None
