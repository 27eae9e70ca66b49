"""How a run's settings differ from the usual ones of its suite, in words."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from longspan.simulator.errors import InputError
from longspan.simulator.installed import suites
from longspan.simulator.manifest import Manifest
from longspan.simulator.settings import RunSettings
from longspan.simulator.suite import Suite, load_suite

__all__ = ["changed_options", "changed_parameters", "changed_tests", "chosen_scenarios"]

MAX_CHARS: Final = 60
"""Characters shown of a value."""

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
)
"""Settings that are named with their value where they are not the default."""


def chosen_scenarios(manifest: Manifest) -> list[str]:
    """The scenarios of a run, if they are not all of its suite's and no others."""
    usual = _usual(manifest.suite.name)
    scenarios = list(manifest.suite.scenarios)
    return scenarios if usual is not None and set(scenarios) != set(usual.scenarios) else []


def changed_options(manifest: Manifest, *, tests: bool = True) -> list[str]:
    """What was changed on the command line, apart from suite, span, seed, agent and scenarios, and without `tests` from their number."""
    found = ["isolated"] if manifest.isolated else []
    found += ["imported"] if manifest.imported is not None else []
    defaults = RunSettings.model_fields
    values = {name: getattr(manifest, name) for name in OPTIONS}
    found += [f"{name} {_short(value)}" for name, value in values.items() if value != defaults[name].default]
    if tests and changed_tests(manifest):
        found.append(f"{manifest.suite.tests:,} {'test' if manifest.suite.tests == 1 else 'tests'} each")
    return [*found, *changed_parameters(manifest)]


def changed_tests(manifest: Manifest) -> bool:
    """Whether there are more or fewer tests of each scenario than usual in a suite that comes with longspan."""
    usual = _usual(manifest.suite.name)
    return usual is not None and manifest.suite.tests != usual.tests


def changed_parameters(manifest: Manifest) -> list[str]:
    """The parameters of scenarios that were changed; none of a suite that does not come with longspan."""
    usual = _usual(manifest.suite.name)
    return list(_of_suite(manifest.suite, usual)) if usual is not None else []


def _of_suite(suite: Suite, usual: Suite) -> Iterator[str]:
    for scenario, parameters in suite.scenarios.items():
        known = usual.scenarios.get(scenario, {})
        for name, value in parameters.items():
            if name != "tokenizer" and known.get(name) != value:
                yield f"{f'{scenario}.' if len(suite.scenarios) > 1 else ''}{name} {_short(value)}"


def _short(value: Any) -> str:
    text = f"{value:,}" if type(value) is int else str(value)
    return text if len(text) <= MAX_CHARS else f"{text[: MAX_CHARS - 1]}…"


@cache
def _usual(name: str) -> Suite | None:
    """The suite that comes with longspan; None if there is none of that name."""
    try:
        return load_suite(name) if name in suites() else None
    except InputError:
        return None
