"""Results of runs for Python: scores, tests, and pages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, final

from longspan.simulator.api.frame import Frame
from longspan.simulator.api.markup import embed_page, preformat
from longspan.simulator.api.shown import ShownTest
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.shares import format_interval, format_percent, format_points, format_share_range
from longspan.simulator.base.suggestions import suggest
from longspan.simulator.pages.report import report_of
from longspan.simulator.pages.report.comparison import as_html
from longspan.simulator.pages.report.run_view import RunView
from longspan.simulator.results.analysis.baseline import Fall, measure_fall
from longspan.simulator.results.analysis.comparable import check_comparable
from longspan.simulator.results.analysis.reach_gate import GateDecision
from longspan.simulator.results.analysis.rows import TESTS, test_row
from longspan.simulator.results.graded_runs import Column, GradedRun, Unusable, load_runs, name_runs
from longspan.simulator.results.measures.cells import Cell, cells_of
from longspan.simulator.results.measures.comparing import compare_runs
from longspan.simulator.results.measures.experiments import EXPERIMENTS, experiment_rows
from longspan.simulator.results.measures.meaning import RunScores, meaning_of
from longspan.simulator.results.measures.reach import decide_reach, pool_reach
from longspan.simulator.results.reach_result import ReachResult
from longspan.simulator.results.result import Meaning, recall_of

__all__ = ["Page", "Results", "load"]

HEIGHT: Final = 720
"""The height of a page in a notebook, in pixels."""

SCORES: Final[dict[str, type]] = {
    "agent": str,
    "span": int,
    "runs": int,
    "tests": int,
    "score": float,
    "low": float,
    "high": float,
    "maximum": int,
    "share": float,
    "chance": float,
    "unscored": int,
    "cost_usd": float,
}
"""The columns of the table of scores. docs/guides/python.md describes each."""


def load(*paths: str | Path) -> Results:
    """Return the results of played runs. Each path is a run's folder or a folder of runs. Raises InputError."""
    runs, unusable = load_runs([Path(path) for path in paths])
    return Results(runs, unusable)


@final
class Page:
    """A self-contained HTML page. Notebooks display it, and `save` writes it to a file."""

    def __init__(self, html: str) -> None:
        self.html = html

    def save(self, path: str | Path) -> Path:
        """Write the page to a file and return its path."""
        from longspan.simulator.base.files.file_io import write_text

        write_text(Path(path), [self.html])
        return Path(path)

    def __repr__(self) -> str:
        return f"<a page of {len(self.html):,} characters; save(path) writes it>"

    def _repr_html_(self) -> str:
        return embed_page(self.html, HEIGHT)


@final
class Results:
    """The results of runs. Tables are read immediately, conversations when first needed."""

    def __init__(self, runs: Sequence[GradedRun], unusable: Sequence[Unusable] = ()) -> None:
        check_comparable(runs)
        self._runs = list(runs)
        self._left_out = [run.why for run in unusable]
        self._readings: dict[Path, RunView] = {}

    @property
    def folders(self) -> list[Path]:
        """The runs' folders."""
        return [run.folder.path for run in self._runs]

    @property
    def reach(self) -> list[ReachResult]:
        """How far back plain facts are recalled, for each agent and span, over all runs that ask for facts at many distances.

        For a memory, this is the result of its last stage.
        """
        return pool_reach(self._runs)

    def decide_reach(self, limit: int, at_least: float = 0.5) -> GateDecision:
        """Decide whether the runs show that their agent recalls at least a share of plain facts at every distance up to `limit` tokens.

        All runs must be of one agent.
        """
        return decide_reach([run.result.tests for run in self._runs], limit, at_least)

    @property
    def left_out(self) -> list[str]:
        """The reasons why runs or scenarios are left out of the results, one sentence each."""
        fitting = dict.fromkeys(line for run in self._runs for line in run.manifest.left_out)
        return [*self._left_out, *fitting]

    @property
    def score(self) -> float | None:
        """The mean score of one agent's runs at one span, in points out of `maximum`, or None if a test has no score.

        Raises InputError for several agents or spans.
        """
        return self._cell[1].score

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest possible score: tests without a score count as 0, or as 1."""
        return self._cell[1].bounds

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% interval of the score, or None if a scenario has only one test."""
        found = self._cell[1].interval
        return None if found is None else (found.low, found.high)

    @property
    def measured(self) -> str:
        """The quantity that the score measures, with remarks in brackets: "score", "token F1 (no judge)"."""
        return "; ".join(dict.fromkeys(run.result.measured for run in self._runs))

    @property
    def maximum(self) -> int:
        """Full marks: the number of scenarios."""
        return self._cell[1].maximum

    @property
    def share(self) -> float:
        """The score as a share of full marks, in [0, 1]. Tests without a score count as 0."""
        return self._cell[1].share[0]

    @property
    def recall(self) -> float | None:
        """The recall of a memory without an answerer, averaged over the runs of one agent at one span. None for other runs."""
        (agent, column), _ = self._cell
        return recall_of([run.result for run in self._runs if (run.agent, run.column) == (agent, column)])

    @property
    def chance(self) -> float:
        """The expected score of guessing without a memory."""
        return self._cell[1].chance

    @property
    def meaning(self) -> Meaning | None:
        """The meaning of the score of one agent's runs at one span, or None for runs that measure how far back the agent remembers.

        Raises InputError for several agents or spans.
        """
        (agent, column), _ = self._cell
        own = [run for run in self._runs if (run.agent, run.column) == (agent, column)]
        if any(run.result.reach for run in own):
            return None
        return meaning_of([RunScores(run.manifest, run.result.tests, run.result.control) for run in own])

    @cached_property
    def scores(self) -> Frame:
        """A row for each agent and span."""
        return Frame(SCORES, [_score_row(agent, column, cell) for (agent, column), cell in self._cells.items()])

    @cached_property
    def tests(self) -> Frame:
        """A row for each test, with the columns of `longspan export`."""
        called = name_runs(self._runs)
        return Frame(TESTS, [test_row(called[run.folder.path], run, test) for run in self._runs for test in run.result.tests])

    @cached_property
    def experiments(self) -> Frame:
        """A row for each test of a twin or a lesion, with its score in the run and its score in the experiment."""
        return Frame(EXPERIMENTS, list(experiment_rows(self._runs)))

    def failed(self) -> list[ShownTest]:
        """Return the tests that lost points or have no score, worst first."""
        tests = [(run, test) for run in self._runs for test in run.result.tests if test.score != 1 and test.counts]
        return [self._shown(run, test.id) for run, test in sorted(tests, key=lambda each: each[1].lowest)]

    def show(self, test: str, *, seed: int | None = None, agent: str | None = None) -> ShownTest:
        """Return a test as it was played, such as "jokes-2". `seed` and `agent` select its run if several runs have it.

        Raises InputError if no run has the test, or more than one.
        """
        having = [run for run in self._runs if any(each.id == test for each in run.result.tests)]
        if not having:
            ids = sorted({each.id for run in self._runs for each in run.result.tests})
            raise InputError(f"there is no test {test!r:.60}{suggest(test, ids, 'the column test of `tests` lists them')}")
        found = [run for run in having if seed in (None, run.manifest.seed) and agent in (None, run.manifest.agent, run.agent)]
        if len(found) != 1:
            seeds = sorted({run.manifest.seed for run in having})
            several = "select one with seed=..." if len(seeds) == len(having) else "load the folder of one of them (longspan.load)"
            what = f"{len(found)} runs have test {test}" if found else f"no run with seed {seed} has test {test}"
            raise InputError(f"{what}; there are seeds {', '.join(map(str, seeds))}: {several}")
        return self._shown(found[0], test)

    def report(self) -> Page:
        """Return the report of a single run, or the comparison of several, as a page."""
        if len(self._runs) > 1:
            return Page(as_html(compare_runs(self._runs)))
        (run,) = self._runs
        return Page("".join(report_of(run.folder, run.result)))

    def compare(self, other: Results, *, margin: float = 0.0) -> Fall:
        """Test whether these results are worse than `other`. The test is one-sided and pairs whole conversations by seed.

        `margin` is the fall to tolerate, as a share of full marks. In the result, `sentence` describes the finding. `verdict` is "worse",
        "not worse", or, for fewer than five pairs, "undecided".
        """
        return measure_fall(self._runs, other._runs, margin)

    def __repr__(self) -> str:
        return "\n".join(_sentence(agent, column, cell, self.measured) for (agent, column), cell in self._cells.items())

    def _repr_html_(self) -> str:
        return preformat(repr(self))

    @cached_property
    def _cells(self) -> dict[tuple[str, Column], Cell]:
        return cells_of([run for run in self._runs if not run.result.ungraded] or self._runs)

    @property
    def _cell(self) -> tuple[tuple[str, Column], Cell]:
        if len(self._cells) > 1:
            among = "; ".join(f"{agent}{column.at}" for agent, column in self._cells)
            raise InputError(f"a single score needs one agent at one span, and these are {among}; see `scores`"[:300])
        return next(iter(self._cells.items()))

    def _shown(self, run: GradedRun, test: str) -> ShownTest:
        result = next(each for each in run.result.tests if each.id == test)
        return ShownTest(run, result, lambda: self._reading(run))

    def _reading(self, run: GradedRun) -> RunView:
        if run.folder.path not in self._readings:
            self._readings[run.folder.path] = RunView.of(run.folder)
        return self._readings[run.folder.path]


def _score_row(agent: str, column: Column, cell: Cell) -> dict[str, Any]:
    return {
        "agent": agent,
        "span": column.span or None,
        "runs": cell.runs,
        "tests": cell.tests,
        "score": cell.score,
        "low": cell.interval.low if cell.interval else None,
        "high": cell.interval.high if cell.interval else None,
        "maximum": cell.maximum,
        "share": cell.share[0],
        "chance": cell.chance,
        "unscored": cell.tests - cell.statuses.get("scored", 0),
        "cost_usd": cell.cost_usd,
    }


def _sentence(agent: str, column: Column, cell: Cell, measured: str) -> str:
    runs = f"{cell.runs} run{'s' * (cell.runs > 1)}"
    named = "" if measured == "score" else f"{measured} "
    score = (
        f"{format_share_range(*cell.share)}{format_interval(cell.interval, whole=cell.maximum)} ({format_points(*cell.bounds)} of "
        f"{cell.maximum})"
    )
    return f"{agent}{column.at}: {named}{score}, chance {format_percent(cell.chance / cell.maximum)}; {runs}, {cell.tests} tests"
