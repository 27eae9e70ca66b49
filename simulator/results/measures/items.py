"""The items of tests with compound scores: how many items full marks require, and how many were right individually."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple, final

from longspan.simulator.base.document import Chapter, Document, Section, Sentence
from longspan.simulator.base.shares import format_percent
from longspan.simulator.base.tables import Table
from longspan.simulator.contract.plugins import installed_scenarios
from longspan.simulator.results.measures.measure import Measure
from longspan.simulator.results.result import Result, TestResult
from longspan.simulator.suite.manifest import Manifest

__all__ = ["ItemCounts", "Items", "item_counts"]


@final
class ItemCounts(NamedTuple):
    """A scenario's tests with items.

    `each` is the mean number of items of a test. `right` is the share of items with full marks, among those with a score. `full` is the
    share of tests with full marks.
    """

    scenario: str
    tests: int
    each: float
    right: float
    full: float


@final
class Items(Measure):
    """How many items full marks require, and how many are right, in scenarios where one wrong item costs more than its part.

    These are the scenarios with `Scenario.compounded`.
    """

    name = "items"

    @classmethod
    def describe_run(cls, manifest: Manifest, result: Result) -> Document:
        scenarios = installed_scenarios(manifest.suite.scenarios)
        found = item_counts([test for test in result.tests if test.scenario in scenarios and scenarios[test.scenario].compounded])
        if not found:
            return Document()
        told = ", ".join(f"{each.scenario} {format_percent(each.right)} of {each.each:.3g}" for each in found)
        return Document(
            lines=[Sentence(f"right: {told}; a full mark takes all items of a test", "items")],
            chapters=[Chapter("Items of tests", "In these tests, one wrong item costs more than its part.", [_section(found)])],
        )


def item_counts(tests: Sequence[TestResult]) -> list[ItemCounts]:
    """Return the counts of each scenario with items, in alphabetical order.

    Tests without a score do not count. Neither do tests that a person has corrected, because their items have not been corrected.
    """
    by_scenario: dict[str, list[TestResult]] = {}
    for test in tests:
        if test.score is not None and not test.correction and any(item.score is not None for item in test.items):
            by_scenario.setdefault(test.scenario, []).append(test)
    return [_counts(scenario, graded) for scenario, graded in sorted(by_scenario.items())]


def _counts(scenario: str, graded: Sequence[TestResult]) -> ItemCounts:
    scores = [item.score for test in graded for item in test.items if item.score is not None]
    each = fmean(len(test.items) for test in graded)
    return ItemCounts(scenario, len(graded), each, fmean(score == 1 for score in scores), fmean(test.score == 1 for test in graded))


def _section(found: Sequence[ItemCounts]) -> Section:
    rows = [[each.scenario, f"{each.tests:,}", f"{each.each:.3g}", format_percent(each.right), format_percent(each.full)] for each in found]
    hardest = max(found, key=lambda each: (each.each, each.scenario))
    return Section(
        heading="How many items a full mark takes",
        sentence=f"A test of {hardest.scenario} has most: {hardest.each:.3g} items.",
        explained=(
            "Items of a test: on average, in the tests with a score. Items right: the share of single items with full marks. Full marks: "
            "the share of tests. An agent that gets most items right may still have few full marks."
        ),
        table=Table(
            title="Items of tests", columns=["scenario", "tests", "items of a test", "items right", "full marks"], rows=rows, note=""
        ),
    )
