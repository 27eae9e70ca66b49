"""The tables that scenarios make of their own tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from longspan.simulator.base.blame import at_line, is_fault
from longspan.simulator.base.errors import one_line
from longspan.simulator.base.tables import Table
from longspan.simulator.contract.graded_record import Marked
from longspan.simulator.contract.scenario import Scenario
from longspan.simulator.results.result import TestResult

__all__ = ["marked", "tables_of"]


def marked(tests: Sequence[TestResult]) -> list[Marked]:
    """Return tests as their scenario sees them. A test that a person has corrected has no items."""
    return [Marked(test.id, test.score, () if test.correction else tuple(test.items)) for test in tests]


def tables_of(scenario: Scenario, runs: Mapping[str, Sequence[TestResult]]) -> list[Table]:
    """Return the tables that a scenario makes of its tests, given by run name. If it raises, a table shows the error."""
    try:
        return [Table.model_validate(table) for table in scenario.tables({run: marked(tests) for run, tests in runs.items()})]
    except BaseException as error:
        if not is_fault(error):
            raise
        why = f"{one_line(error)}{at_line(error, type(scenario))}"
        return [Table(title=f"{scenario.name}: its tables failed", columns=["error"], rows=[[why]])]
