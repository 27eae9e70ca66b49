"""Whether runs can be set side by side, and in what they differ besides their agents."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final

from longspan.simulator.agent_spec import AgentSpec
from longspan.simulator.analysis.graded_runs import Column, Graded
from longspan.simulator.errors import InputError

__all__ = ["check_comparable", "differences", "test_key"]

OFF: Final = ("false", "0", "no", "off", "f", "n")
"""What pydantic takes for false."""

DEFINITIONS: Final = "the set of definitions that the tests came from"
FITTING: Final = "the list of scenarios that fit in"


def check_comparable(runs: Sequence[Graded]) -> None:
    """Raises InputError where runs play other suites, scenarios or parameters: their scores are not of the same tests.

    Whose rules grade is a parameter too, but leaves the tests as they are: it is told by `differences`.
    """
    first = runs[0]
    for other in runs[1:]:
        if other.manifest.suite.name != first.manifest.suite.name:
            what = f"one plays suite {first.manifest.suite.name}, the other {other.manifest.suite.name}"
        elif only := sorted(set(_parameters(first)) ^ set(_parameters(other))):
            what = f"only one plays {', '.join(only)}"[:200]
        elif odd := [name for name, given in _parameters(first).items() if given != _parameters(other)[name]]:
            what = _odd(odd[0], _parameters(first)[odd[0]], _parameters(other)[odd[0]])
        else:
            continue
        remedy = "name the folders of runs that play the same, such as RUNS/ltm-32k-*"
        raise InputError(f"{first.name} and {other.name} cannot be compared: {what}; {remedy}")


def _odd(scenario: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """The parameter in which two runs' scenario differs."""
    name = next(name for name in sorted(one.keys() | other.keys()) if one.get(name) != other.get(name))
    return f"{scenario}.{name} is {one.get(name)!r:.60} in one, {other.get(name)!r:.60} in the other"


def test_key(run: Graded, test: str) -> Hashable:
    """What tells the same test of two runs, besides their column: its seed and name, and what made it of them."""
    return (run.manifest.seed, test, run.manifest.definitions_sha256, run.manifest.versions.get("longspan"))


def differences(runs: Sequence[Graded]) -> list[str]:
    """In what else than span, seed and agent the runs differ, a sentence each: what scores may owe to something else."""
    looked_at: list[tuple[str, Callable[[Graded], str]]] = [
        ("placement", lambda run: run.manifest.placement),
        ("the set of rules that grades", _rules),
        ("the judge", lambda run: run.manifest.judge or "none"),
        ("the tokenizer", lambda run: run.manifest.tokenizer),
        ("the agents' option of timestamps", _timestamps),
        ("the number of tests of each scenario", lambda run: str(run.manifest.suite.tests)),
        (DEFINITIONS, lambda run: (run.manifest.definitions_sha256 or "none")[:12]),
        ("the filler", _filler),
        ("virtual time", lambda run: f"from {run.manifest.starts_at}, {run.manifest.pace_s:g} s a turn"),
        ("the version of longspan, by which a seed may mean other tests,", lambda run: run.manifest.versions.get("longspan", "unknown")),
        (FITTING, lambda run: ", ".join(sorted(run.result.scenarios))),
    ]
    told = [line for what, value in looked_at for line in _differing(runs, what, value)]
    return told + _seeds(runs)


def _differing(runs: Sequence[Graded], what: str, value: Callable[[Graded], str]) -> Iterable[str]:
    """A sentence for the columns in which the runs differ; if there is none, one for columns that differ from each other."""
    columns: dict[Column, dict[str, list[str]]] = {}
    for run in runs:
        columns.setdefault(run.column, {}).setdefault(value(run), []).append(run.manifest.agent)
    within: dict[str, list[str]] = {}
    for column, agents in sorted(columns.items()):
        if len(agents) > 1:
            within.setdefault(_listed(agents), []).append(str(column))
    for text, where in within.items():
        yield f"{what} differs at {', '.join(where)}: {text}"
    # What belongs to a span differs between spans as a matter of course.
    if not within and what not in (DEFINITIONS, FITTING):
        between: dict[str, list[str]] = {}
        for column, agents in sorted(columns.items()):
            between.setdefault(next(iter(agents)), []).append(str(column))
        if len(between) > 1:
            yield f"{what} differs between the columns: {_listed(between)}"


def _listed(values: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{value:.200} ({', '.join(dict.fromkeys(whose))})" for value, whose in sorted(values.items()))


def _seeds(runs: Sequence[Graded]) -> list[str]:
    """Where the agents did not play the same seeds: only tests of the same seed are paired."""
    columns: dict[Column, dict[str, set[int]]] = {}
    for run in runs:
        columns.setdefault(run.column, {}).setdefault(run.manifest.agent, set()).add(run.manifest.seed)
    told = []
    for column, agents in sorted(columns.items()):
        by_seeds: dict[str, list[str]] = {}
        for agent, seeds in agents.items():
            by_seeds.setdefault(", ".join(map(str, sorted(seeds))), []).append(agent)
        if len(by_seeds) > 1:
            told.append(f"the seeds differ at {column}: {_listed(by_seeds)}")
    return told


def _parameters(run: Graded) -> dict[str, dict[str, Any]]:
    """The parameters of each scenario that say what its tests are."""
    return {name: {key: value for key, value in given.items() if key != "rules"} for name, given in run.manifest.suite.scenarios.items()}


def _rules(run: Graded) -> str:
    paper = sorted(name for name, given in run.manifest.suite.scenarios.items() if given.get("rules") == "paper")
    return f"the paper's for {', '.join(paper)}" if paper else "longspan's"


def _filler(run: Graded) -> str:
    return f"{(run.manifest.filler_sha256 or 'almanac')[:12]}, {run.manifest.filler_size:,} tokens at most"


def _timestamps(run: Graded) -> str:
    try:
        given = AgentSpec.parse(run.manifest.agent).options.get("timestamps", "")
    except InputError:  # the agent of an imported run is called as its file says
        return "as they are by default"
    return "off" if given.lower() in OFF else "as they are by default"
