"""The interface of a figure. Each figure is one file: how it is measured, its keys in result.json, and its description for people."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, NamedTuple, Self, final

from longspan.simulator.base.agent_names import ShortNames, short_names
from longspan.simulator.base.document import Document
from longspan.simulator.contract.graded_record import Grade
from longspan.simulator.contract.scenario import Scenario
from longspan.simulator.journal.events import Event
from longspan.simulator.journal.transcript import Change, PlayedTest, Transcript
from longspan.simulator.results.analysis.distance_curve import DistanceCurve, distance_curve
from longspan.simulator.results.analysis.distances import Point
from longspan.simulator.results.analysis.pairing import pair_tests
from longspan.simulator.results.analysis.pairs import Pair, SharedTests, compare_pairs, share_scores
from longspan.simulator.results.analysis.stage_estimates import PLACES, EvidenceQuestions, share_recall
from longspan.simulator.results.analysis.units import Units, observe_questions
from longspan.simulator.results.graded_runs import Column, GradedRun
from longspan.simulator.results.measures.cells import Cell
from longspan.simulator.results.result import Result, TestResult
from longspan.simulator.subject.spending_record import SpendingTotals
from longspan.simulator.suite.manifest import Manifest

__all__ = ["GradedTests", "Measure", "SideBySide"]


@final
class GradedTests(NamedTuple):
    """A run whose tests are graded.

    `transcripts` has the conversations and experiments that have begun. `models` lists the judge's usage as (part, usage, cost in dollars).
    `spending` is the cost of the run so far, None if nothing was paid for. `grade` returns the grade of a test in a conversation.
    `dropped_by_judge` lists what the judge's server rejected, by answer.
    """

    manifest: Manifest
    scenarios: Mapping[str, Scenario]
    tests: Sequence[TestResult]
    transcripts: Mapping[str, Transcript]
    models: Sequence[tuple[str, dict[str, int], float | None]]
    spending: SpendingTotals | None
    grade: Callable[[str, PlayedTest], Grade]
    dropped_by_judge: Sequence[object]

    @property
    def own(self) -> list[Transcript]:
        """The transcripts of the run's conversations, without its experiments."""
        return [self.transcripts[id] for id in self.manifest.conversations if id in self.transcripts]

    @property
    def by_scenario(self) -> dict[str, list[TestResult]]:
        """The tests by scenario, in alphabetical order."""
        found: dict[str, list[TestResult]] = {}
        for test in self.tests:
            found.setdefault(test.scenario, []).append(test)
        return dict(sorted(found.items()))


@final
@dataclass(frozen=True, eq=False)
class SideBySide:
    """Runs of the same tests.

    `agents` are ranked, best first. `cells` has each agent's score in each of the `columns`. `memories` has the questions of agents whose
    traces report what their memory found. With an agent as `baseline`, only pairs with it are compared, as in `against`.
    """

    runs: Sequence[GradedRun]
    agents: Sequence[str]
    columns: Sequence[Column]
    cells: Mapping[tuple[str, Column], Cell]
    memories: Mapping[tuple[str, Column], EvidenceQuestions]
    baseline: str | None = None

    @cached_property
    def called(self) -> ShortNames:
        """The agents' short names, for people."""
        return short_names(self.agents)

    @property
    def by_recall(self) -> bool:
        """Whether all agents are memories, and therefore compared by recall first."""
        return len(self.memories) == len(self.cells)

    @cached_property
    def k(self) -> int:
        """The number of memories that recall is compared at: the lowest that any agent asked for."""
        return min((max(asked.places) for asked in self.memories.values()), default=max(PLACES))

    @property
    def answering(self) -> list[str]:
        """The agents that have a score. A memory that only searches has none."""
        silent = {agent for agent, column in self.memories if not any(self._is_scored(agent, each) for each in self.columns)}
        return [agent for agent in self.agents if agent not in silent]

    def _is_scored(self, agent: str, column: Column) -> bool:
        return (agent, column) in self.cells and self.cells[agent, column].statuses.get("scored", 0) > 0

    @property
    def places(self) -> list[tuple[str, Column, Cell]]:
        """The cells, column by column, the best agent first in each."""
        keys = [(agent, column) for column in self.columns for agent in self.agents if (agent, column) in self.cells]
        return [(agent, column, self.cells[agent, column]) for agent, column in keys]

    @cached_property
    def points(self) -> dict[str, list[Point]]:
        """Each agent's graded questions with their distances, over all columns."""
        return {
            agent: observe_questions((run.manifest, run.result.tests) for run in self.runs if run.agent == agent) for agent in self.agents
        }

    @cached_property
    def curves(self) -> dict[str, DistanceCurve]:
        """Each agent's curve of score by distance. An agent with too few questions has no curve."""
        curves = {agent: distance_curve(found) for agent, found in self.points.items()}
        return {agent: curve for agent, curve in curves.items() if curve is not None}

    @cached_property
    def units(self) -> Units:
        """The units of all tests."""
        return Units(run.manifest for run in self.runs)

    @cached_property
    def shared_scores(self) -> list[SharedTests]:
        """The tests that each pair of agents shares in each column, by scores. Memories that only search have none."""
        return [
            shared
            for column, one, other in self._both(self.answering, self.cells)
            if (shared := share_scores(column, one, other, pair_tests(self.of(one, column), self.of(other, column)))) is not None
        ]

    @cached_property
    def shared_recall(self) -> list[SharedTests]:
        """The questions that each pair of memories shares in each column, by recall among the first `k`."""
        return self._share_recall()

    def against(self, baseline: str) -> list[Pair]:
        """Compare each other agent with a baseline in each column: by recall if all agents are memories, otherwise by scores.

        This is the only comparison with a baseline: every medium shows these pairs.
        """
        shared = self.shared_recall if self.by_recall else self.shared_scores
        found = compare_pairs([each for each in shared if baseline in (each.agent, each.other)])
        return [pair if pair.other == baseline else pair.turned for pair in found]

    @cached_property
    def recall_pairs(self) -> list[Pair]:
        """Each pair of memories in each column, by recall among the first `k`, the better first."""
        return [pair.best_first for pair in compare_pairs(self._select_shared(self.shared_recall))]

    def pairs_by_recall(self, kinds: Mapping[str, Callable[[TestResult], bool]]) -> dict[str, list[Pair]]:
        """Return the pairs of memories by recall among the first `k`, by kind of question, corrected for all of them together."""
        shared = [(kind, each) for kind, chosen in kinds.items() for each in self._select_shared(self._share_recall(chosen))]
        pairs = compare_pairs([each for _, each in shared])
        return {name: [pair.best_first for (kind, _), pair in zip(shared, pairs, strict=True) if kind == name] for name in kinds}

    def _share_recall(self, chosen: Callable[[TestResult], bool] = lambda test: True) -> list[SharedTests]:
        return [
            shared
            for column, one, other in self._both(self.agents, self.memories)
            for asked in [(self.memories[one, column], self.memories[other, column])]
            if (shared := share_recall(column, one, other, asked, self.k, units=self.units, chosen=chosen)) is not None
        ]

    def _both(self, agents: Sequence[str], there: Container[tuple[str, Column]]) -> Iterator[tuple[Column, str, str]]:
        """Yield each pair of the agents that are there in a column."""
        for column in self.columns:
            for one, other in combinations([agent for agent in agents if (agent, column) in there], 2):
                yield column, one, other

    def _select_shared(self, shared: Iterable[SharedTests]) -> list[SharedTests]:
        return [each for each in shared if self.baseline is None or self.baseline in (each.agent, each.other)]

    def of(self, agent: str, column: Column) -> list[GradedRun]:
        """Return an agent's runs in a column."""
        return [run for run in self.runs if run.agent == agent and run.column == column]


class Measure:
    """A figure. Every method has an empty default, so that a subclass defines only the ones it needs.

    An instance reads one conversation. To add a figure, write its file and list it in `MEASURES` (`measures/__init__.py`).
    """

    name: ClassVar[str]
    """The figure's name in other code."""

    def fold(self, event: Event, change: Change) -> None:
        """Read the conversation's next event, and the change it made to the transcript."""

    @classmethod
    def of_run(cls, run: GradedTests, read: Mapping[str, Self]) -> Mapping[str, Any]:
        """Return the figure's part of result.json: keys that `Result` declares, and numbers under other names, which go to `metrics`.

        `read` maps the id of each of the run's conversations to the instance that read it. It is empty unless the measure defines `fold`.
        """
        return {}

    @classmethod
    def describe_run(cls, manifest: Manifest, result: Result) -> Document:
        """Return the document for people about one run."""
        return Document()

    @classmethod
    def describe_runs(cls, runs: Sequence[GradedRun]) -> Document:
        """Return the document for people about several runs in a list, one line each."""
        return Document()

    @classmethod
    def describe_comparison(cls, side: SideBySide) -> Document:
        """Return the document for people and programs about runs side by side."""
        return Document()
