"""The runs that a command line or a sweep file defines: one for each combination of suite, span, agent and seed."""

from __future__ import annotations

from itertools import product
from typing import Literal, final

from pydantic import Field

from longspan.simulator.base.clock import DEFAULT_PACE
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.fields import Names, Seeds, Spans
from longspan.simulator.suite.definitions import read_definitions
from longspan.simulator.suite.settings import Conditions, RunSettings
from longspan.simulator.suite.suite import Tests, load_suite

__all__ = ["Grid"]


@final
class Grid(Conditions):
    """One run for each combination of suite, span (in tokens), agent and seed, all under the same conditions.

    `tests`, `scenarios`, `set` and `data` change the suites (see `Suite.changed`). `rules` selects the grading rules, and `gold` the gold
    answers of scenarios that also have corrected ones. With the paper's rules, needles are placed as in the paper unless `placement` says
    otherwise. `pace` is the virtual seconds per turn. Spans default to the definitions' span, or else to the suite's. A string may list
    several seeds (`0-9`) or spans (`2k,32k`).
    """

    suites: Names = Field(default=["ltm"], min_length=1)
    spans: Spans = Field(default=[], validate_default=True)
    agents: Names = Field(default=["notebook"], min_length=1)
    seeds: Seeds = Field(default=[0], min_length=1)
    tests: Tests | None = None
    scenarios: Names = Field(default=[])
    set: Names = Field(default=[])
    data: Names = Field(default=[])
    rules: Literal["longspan", "paper"] = "longspan"
    gold: Literal["published", "corrected"] = "published"
    pace: float = Field(default=DEFAULT_PACE.total_seconds(), ge=0, le=86_400)

    def runs(self) -> list[RunSettings]:
        """Return the settings of each run, without duplicates. Raises InputError for an invalid suite, parameter or definition."""
        definitions = read_definitions(self.definitions) if self.definitions else None
        if definitions is not None and definitions.span is None and not self.spans:
            raise InputError(f"definitions {definitions.folder}: no span given; set one with --span (in a sweep: spans)")
        chosen = {"rules=paper": self.rules == "paper", "gold=corrected": self.gold == "corrected"}
        changes = [*self.set, *(change for change, is_wanted in chosen.items() if is_wanted)]
        tests = self.tests or (definitions.max_tests if definitions else None)
        suites = [load_suite(name).apply_changes(changes, self.data, self.scenarios, tests) for name in dict.fromkeys(self.suites)]
        conditions = {name: getattr(self, name) for name in Conditions.model_fields}
        if self.rules == "paper" and "placement" not in self.model_fields_set:
            conditions["placement"] = "uniform"
        return [
            RunSettings(suite=suite, span=span, agent=agent, seed=seed, pace_s=self.pace, **conditions)
            for suite in suites
            for span, agent, seed in product(
                dict.fromkeys(self.spans or [definitions.span if definitions and definitions.span else suite.span]),
                dict.fromkeys(self.agents),
                dict.fromkeys(self.seeds),
            )
        ]
