"""Checks of whether runs can be compared, and their differences apart from their agents."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from longspan.simulator.base.errors import InputError
from longspan.simulator.results.analysis.changes import SHOWN_SHA256, list_changed_parameters, list_chosen_scenarios
from longspan.simulator.results.graded_runs import Column, GradedRun
from longspan.simulator.suite.agent_spec import AgentSpec
from longspan.simulator.suite.manifest import Manifest

__all__ = [
    "check_comparable",
    "describe_differences",
    "describe_pooling",
    "group_comparable",
    "key_in",
    "other_data",
    "played_key",
    "test_key",
]

OFF: Final = ("false", "0", "no", "off", "f", "n")
"""The strings that pydantic reads as false."""

MAX_NAME: Final = 200
"""The maximum number of characters in a group's name."""

DEFINITIONS: Final = "the set of definitions"
FITTING: Final = "the list of scenarios that fit into the span"


def check_comparable(runs: Sequence[GradedRun]) -> None:
    """Raise InputError if runs play different suites, scenarios or parameters, since their scores then belong to different tests.

    The parameter `rules` does not change the tests; `describe_differences` reports it.
    """
    first = runs[0]
    mine = _parameters(first.manifest)
    for other in runs[1:]:
        theirs = _parameters(other.manifest)
        if other.manifest.suite.name != first.manifest.suite.name:
            what = f"one plays suite {first.manifest.suite.name}, the other {other.manifest.suite.name}"
        elif only := sorted(set(mine) ^ set(theirs)):
            what = f"only one plays {', '.join(only)}"[:200]
        elif differing := [name for name, given in mine.items() if given != theirs[name]]:
            what = _find_differing_parameter(differing[0], first.manifest, other.manifest)
        elif changed := [name for name in mine if _version_of(name, first) != _version_of(name, other)]:
            name = changed[0]
            what = f"one plays version {_version_of(name, first)} of {name}, the other version {_version_of(name, other)}"
        elif _reruns(first.manifest) != _reruns(other.manifest):
            what = "one plays only tests that had failed in another run"
        else:
            continue
        remedy = "name only runs of the same tests, such as RUNS/ltm-32k-*"
        raise InputError(f"{first.name} and {other.name} cannot be compared: {what}; {remedy}")


def group_comparable(runs: Sequence[GradedRun]) -> dict[str, list[GradedRun]]:
    """Group runs that play the same tests, so that the runs of each group can be compared. Name each group by its differences from the
    others.

    Groups are ordered by the names of their suites, with the largest first.
    """
    groups: dict[str, list[GradedRun]] = {}
    for run in runs:
        groups.setdefault(played_key(run.manifest), []).append(run)
    ordered = sorted(groups.values(), key=lambda group: (group[0].manifest.suite.name, -len(group)))
    names = [_name(group[0]) for group in ordered]
    numbers = [names[:place].count(name) + 1 for place, name in enumerate(names)]
    return {f"{name} ({number})" if number > 1 else name: group for name, number, group in zip(names, numbers, ordered, strict=True)}


def other_data(runs: Sequence[GradedRun]) -> list[str]:
    """Return a sentence for each data name that stands for different data in different runs."""
    found: dict[tuple[str, str, str], dict[str, str]] = {}
    for run in runs:
        for parameter, sha256 in run.manifest.data.items():
            name = Path(run.manifest.named(parameter)).name
            found.setdefault((run.manifest.suite.name, parameter, name), {}).setdefault(sha256, run.name)
    sentences = []
    for (_, parameter, name), having in found.items():
        if len(having) > 1:
            both = " and ".join(f"{run} (SHA-256 {sha256[:SHOWN_SHA256]})" for sha256, run in [*having.items()][:2])
            sentences.append(f"{parameter} {name:.80} is not the same data in {both}, whose results are neither pooled nor paired")
    return sentences


def played_key(manifest: Manifest) -> str:
    """Return a key that is equal for runs that play the same suite, scenarios and parameters, so that they can be compared."""
    parts = [manifest.suite.name, _parameters(manifest), manifest.scenario_versions, _reruns(manifest)]
    return json.dumps(parts, sort_keys=True, default=str)


def _name(run: GradedRun) -> str:
    """Describe the tests that a run plays."""
    manifest = run.manifest
    changed = [*list_chosen_scenarios(manifest), *list_changed_parameters(manifest)]
    failed = [f"tests that had failed in {manifest.parent}"] if manifest.parent is not None else []
    return f"{manifest.suite.name}{': ' * bool(changed or failed)}{', '.join([*changed, *failed])}"[:MAX_NAME]


def _reruns(manifest: Manifest) -> list[str] | None:
    """Return the tests of a run that repeats the tests that failed in another run."""
    return None if manifest.parent is None else sorted(planned.id for _, planned in manifest.graded)


def _find_differing_parameter(scenario: str, one: Manifest, other: Manifest) -> str:
    """Describe the first parameter of a scenario that differs between two runs."""
    mine, theirs = (_parameters(manifest)[scenario] for manifest in (one, other))
    name = next(name for name in sorted(mine.keys() | theirs.keys()) if mine.get(name) != theirs.get(name))
    mine_told, theirs_told = (_describe_parameter(manifest, scenario, name) for manifest in (one, other))
    return f"{scenario}.{name} is {mine_told} in one, {theirs_told} in the other"


def _describe_parameter(manifest: Manifest, scenario: str, parameter: str) -> str:
    """Return a parameter's value for an error, with the SHA-256 of data."""
    value, sha256 = manifest.suite.scenarios[scenario].get(parameter), manifest.data.get(f"{scenario}.{parameter}")
    return f"{value!r:.60}" if sha256 is None else f"{value!r:.200} (SHA-256 {sha256[:SHOWN_SHA256]})"


def test_key(run: GradedRun, test: str) -> Hashable:
    """Return a key that is equal for the same test in two runs of a column: seed, name, definitions and version of longspan."""
    return key_in(run.manifest, test)


def key_in(manifest: Manifest, test: str) -> Hashable:
    """Return the `test_key` of a test in a run with this manifest."""
    return (manifest.seed, test, manifest.definitions_sha256, manifest.versions.get("longspan"))


def describe_differences(runs: Sequence[GradedRun]) -> list[str]:
    """Return a sentence for each difference between the runs, other than span, seed and agent, that may explain their scores."""
    aspects: list[tuple[str, Callable[[GradedRun], str]]] = [
        ("placement", lambda run: run.manifest.placement),
        ("the set of grading rules", _rules),
        ("the judge", lambda run: run.manifest.judge or "none"),
        ("the tokenizer", lambda run: run.manifest.tokenizer),
        ("the agents' option timestamps", _timestamps),
        ("what servers rejected in requests", lambda run: _describe_dropped(run.result.dropped)),
        ("the number of tests per scenario", lambda run: str(run.manifest.suite.tests)),
        (DEFINITIONS, lambda run: (run.manifest.definitions_sha256 or "none")[:12]),
        ("the filler", _filler),
        ("virtual time", lambda run: f"from {run.manifest.starts_at}, {run.manifest.pace_s:g} s per turn"),
        ("the number of nights in a span", lambda run: str(run.manifest.nights)),
        ("the option score_farewells", lambda run: "on" if run.manifest.score_farewells else "off"),
        ("the version of longspan, which may change the tests of a seed,", lambda run: run.manifest.versions.get("longspan", "unknown")),
        (FITTING, lambda run: ", ".join(sorted(run.result.scenarios))),
    ]
    sentences = [line for what, value in aspects for line in _describe_differing(runs, what, value)]
    return sentences + _seeds(runs)


def describe_pooling(runs: Sequence[GradedRun]) -> list[str]:
    """Return a sentence for each agent with several runs of the same tests."""
    counts = Counter((run.agent, run.column, run.manifest.seed, run.manifest.definitions_sha256, _version(run)) for run in runs)
    several: dict[tuple[str, Column], list[str]] = {}
    for (agent, column, seed, *_), count in sorted(counts.items(), key=str):
        if count > 1:
            several.setdefault((agent, column), []).append(f"{count} of seed {seed}")
    return [
        f"{agent} has several runs of the same tests{column.at} ({', '.join(found):.100}), which count as one agent's: if its code changed "
        "between them, give each version a --label"
        for (agent, column), found in several.items()
    ]


def _describe_differing(runs: Sequence[GradedRun], what: str, value: Callable[[GradedRun], str]) -> Iterable[str]:
    """Yield a sentence for each column whose runs differ, or else one sentence if columns differ from each other."""
    columns: dict[Column, dict[str, list[str]]] = {}
    for run in runs:
        columns.setdefault(run.column, {}).setdefault(value(run), []).append(run.agent)
    within: dict[str, list[str]] = {}
    for column, agents in sorted(columns.items()):
        if len(agents) > 1:
            within.setdefault(_list_values(agents), []).append(str(column))
    for text, where in within.items():
        yield f"{what} differs at {', '.join(where)}: {text}"
    # Values that depend on the span always differ between spans.
    if not within and what not in (DEFINITIONS, FITTING):
        between: dict[str, list[str]] = {}
        for column, agents in sorted(columns.items()):
            between.setdefault(next(iter(agents)), []).append(str(column))
        if len(between) > 1:
            yield f"{what} differs between the columns: {_list_values(between)}"


def _list_values(values: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{value:.200} ({', '.join(dict.fromkeys(whose))})" for value, whose in sorted(values.items()))


def _seeds(runs: Sequence[GradedRun]) -> list[str]:
    """Describe columns where agents played different seeds, since only tests of the same seed are paired."""
    columns: dict[Column, dict[str, set[int]]] = {}
    for run in runs:
        columns.setdefault(run.column, {}).setdefault(run.agent, set()).add(run.manifest.seed)
    sentences = []
    for column, agents in sorted(columns.items()):
        by_seeds: dict[str, list[str]] = {}
        for agent, seeds in agents.items():
            by_seeds.setdefault(", ".join(map(str, sorted(seeds))), []).append(agent)
        if len(by_seeds) > 1:
            sentences.append(f"the seeds differ at {column}: {_list_values(by_seeds)}")
    return sentences


def _parameters(manifest: Manifest) -> dict[str, dict[str, Any]]:
    """Return the parameters of each scenario that determine its tests, except the span. Data are identified by content, not by path."""
    return {
        name: {key: manifest.data.get(f"{name}.{key}", value) for key, value in given.items() if key not in ("rules", "span")}
        for name, given in manifest.suite.scenarios.items()
    }


def _rules(run: GradedRun) -> str:
    paper = sorted(name for name, given in run.manifest.suite.scenarios.items() if given.get("rules") == "paper")
    return f"the paper's for {', '.join(paper)}" if paper else "longspan's"


def _version_of(scenario: str, run: GradedRun) -> int:
    return run.manifest.scenario_versions.get(scenario, 1)


def _version(run: GradedRun) -> str | None:
    return run.manifest.versions.get("longspan")


def _filler(run: GradedRun) -> str:
    return f"{(run.manifest.filler_sha256 or 'built in')[:12]}, {run.manifest.filler_size:,} tokens at most"


def _describe_dropped(dropped: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{', '.join(names)} ({role})" for role, names in dropped.items()) or "nothing"


def _timestamps(run: GradedRun) -> str:
    try:
        given = AgentSpec.parse(run.manifest.agent).options.get("timestamps", "")
    except InputError:  # an imported run's agent has the name given in its file
        return "default"
    return "off" if given.lower() in OFF else "default"
