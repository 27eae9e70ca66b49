"""Information that agents reveal after farewells, when tests' last questions are repeated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, final

from longspan.simulator.results.measures.measure import GradedTests, Measure
from longspan.simulator.results.result import round_figure

__all__ = ["Farewells"]


@final
class Farewells(Measure):
    """The mean score of the answers given after farewells, by scenario."""

    name = "farewells"

    @classmethod
    def of_run(cls, run: GradedTests, read: Mapping[str, Self]) -> Mapping[str, Any]:
        scores = {
            name: [test.farewell.score for test in group if test.farewell is not None and test.farewell.score is not None]
            for name, group in run.by_scenario.items()
        }
        return {f"{name}: leaked_after_farewell": round_figure(sum(known) / len(known)) for name, known in scores.items() if known}
