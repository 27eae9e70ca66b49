"""The shape of a figure. Each is one file: how it is taken, what result.json has of it, and what people are told of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self, final

from longspan.simulator.base.document import Document
from longspan.simulator.contract.graded_record import Grade
from longspan.simulator.contract.scenario import Scenario
from longspan.simulator.journal.events import Event
from longspan.simulator.journal.transcript import Change, PlayedTest, Transcript
from longspan.simulator.measures.cells import Cell
from longspan.simulator.results.graded_runs import Column, Graded
from longspan.simulator.results.result import Result, TestResult
from longspan.simulator.suite.manifest import Manifest

__all__ = ["GradedTests", "Measure", "SideBySide"]


@final
class GradedTests(NamedTuple):
    """A run whose tests are graded. `transcripts` are those of the conversations and experiments that have begun, `models` what its judge
    has used: (part, usage, cost in dollars). `grade` returns the grade of a test in a conversation."""

    manifest: Manifest
    scenarios: Mapping[str, Scenario]
    tests: Sequence[TestResult]
    transcripts: Mapping[str, Transcript]
    models: Sequence[tuple[str, dict[str, int], float | None]]
    grade: Callable[[str, PlayedTest], Grade]

    @property
    def own(self) -> list[Transcript]:
        """The transcripts of the run's conversations, without those of experiments."""
        return [self.transcripts[id] for id in self.manifest.conversations if id in self.transcripts]

    @property
    def by_scenario(self) -> dict[str, list[TestResult]]:
        """The tests by scenario, in alphabetical order."""
        found: dict[str, list[TestResult]] = {}
        for test in self.tests:
            found.setdefault(test.scenario, []).append(test)
        return dict(sorted(found.items()))


@final
class SideBySide(NamedTuple):
    """Runs of the same tests. `agents` are ranked, best first; `cells` have what each scored in each of the `columns`."""

    runs: Sequence[Graded]
    agents: Sequence[str]
    columns: Sequence[Column]
    cells: Mapping[tuple[str, Column], Cell]

    @property
    def places(self) -> list[tuple[str, Column, Cell]]:
        """The cells, column by column, the best agent of each first."""
        keys = [(agent, column) for column in self.columns for agent in self.agents if (agent, column) in self.cells]
        return [(agent, column, self.cells[agent, column]) for agent, column in keys]

    def of(self, agent: str, column: Column) -> list[Graded]:
        """Return an agent's runs in a column."""
        return [run for run in self.runs if run.agent == agent and run.column == column]


class Measure:
    """A figure. What a subclass does not define is nothing: no medium needs all of it.

    An instance reads one conversation. To add a figure, write its file and name it in `MEASURES` (`measures/__init__.py`).
    """

    name: ClassVar[str]
    """What it is called where one is asked for by name."""

    def fold(self, event: Event, change: Change) -> None:
        """Read the conversation's next event, and what it changed in the transcript."""

    @classmethod
    def of_run(cls, run: GradedTests, read: Mapping[str, Self]) -> Mapping[str, Any]:
        """Return what result.json has of it: the keys that `Result` declares, and other names, which are numbers and go to `metrics`.

        `read`: what was read of each of the run's conversations, by id.
        """
        return {}

    @classmethod
    def shown(cls, manifest: Manifest, result: Result) -> Document:
        """Return what people are told of one run's results."""
        return Document()

    @classmethod
    def compared(cls, side: SideBySide) -> Document:
        """Return what people and programs are told of runs side by side."""
        return Document()
