"""Figures and tables that scenarios define."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Self, final

from longspan.simulator.base.blame import at_line, is_fault
from longspan.simulator.base.document import Document
from longspan.simulator.base.errors import one_line
from longspan.simulator.base.tables import Table
from longspan.simulator.contract.graded_record import Marked
from longspan.simulator.contract.plugins import installed_scenarios
from longspan.simulator.contract.scenario import Scenario
from longspan.simulator.results.graded_runs import GradedRun, name_runs
from longspan.simulator.results.measures.measure import GradedTests, Measure, SideBySide
from longspan.simulator.results.result import TestResult, round_figure

__all__ = ["OwnFigures", "own_tables"]


@final
class OwnFigures(Measure):
    """The figures and tables that scenarios compute from their tests (`Scenario.metrics` and `Scenario.tables`)."""

    name = "own figures"

    @classmethod
    def of_run(cls, run: GradedTests, read: Mapping[str, Self]) -> Mapping[str, Any]:
        tests, scenarios, agent = run.by_scenario, run.scenarios, run.manifest.agent
        figures = {f"{name}: {what}": value for name, group in tests.items() for what, value in _figures(scenarios[name], group)}
        return {"tables": [table for name, group in tests.items() for table in _tables_of(scenarios[name], {agent: group})]} | figures

    @classmethod
    def describe_comparison(cls, side: SideBySide) -> Document:
        return Document(tables=own_tables(side.runs))


def _figures(scenario: Scenario, tests: Sequence[TestResult]) -> list[tuple[str, float]]:
    """Return the figures that a scenario defines, or none if its code raises."""
    try:
        return [(str(name), round_figure(float(value))) for name, value in scenario.metrics(_mark_tests(tests)).items()]
    except BaseException as error:
        if not is_fault(error):
            raise
        return []  # the scenario's tables show the error


def own_tables(runs: Sequence[GradedRun]) -> list[Table]:
    """Return the tables of the installed scenarios. Each run is labelled with its agent, or with its own name if the agent has several
    runs."""
    agents, called = Counter(run.agent for run in runs), name_runs(runs)
    labels = [run.agent if agents[run.agent] == 1 else called[run.folder.path] for run in runs]
    scenarios = {name: each for run in reversed(runs) for name, each in installed_scenarios(run.manifest.suite.scenarios).items()}
    return [
        table
        for name, scenario in sorted(scenarios.items())
        for table in _tables_of(
            scenario,
            {label: [test for test in run.result.tests if test.scenario == name] for label, run in zip(labels, runs, strict=True)},
        )
    ]


def _mark_tests(tests: Sequence[TestResult]) -> list[Marked]:
    """Return tests as their scenario sees them. A test that a person has corrected has no items."""
    return [Marked(test.id, test.score, () if test.correction else tuple(test.items)) for test in tests]


def _tables_of(scenario: Scenario, runs: Mapping[str, Sequence[TestResult]]) -> list[Table]:
    """Return the tables that a scenario makes from its tests, given by run name. If it raises, a table shows the error."""
    try:
        return [Table.model_validate(table) for table in scenario.tables({run: _mark_tests(tests) for run, tests in runs.items()})]
    except BaseException as error:
        if not is_fault(error):
            raise
        why = f"{one_line(error)}{at_line(error, type(scenario))}"
        return [Table(title=f"{scenario.name}: its tables failed", columns=["error"], rows=[[why]])]
