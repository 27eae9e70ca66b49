"""Reproduce the paper's scores from recorded transcripts: our grades, next to the recorded and the printed scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, pstdev
from typing import Final, NamedTuple, TypeVar, final

from longspan.scenarios.goodai import restaurant
from longspan.scenarios.goodai.facts import SCENARIOS, make_facts, make_record
from longspan.scenarios.goodai.files import RunStats, TestRecord, read_records, run_stats
from longspan.scenarios.goodai.table1 import printed_score
from longspan.scenarios.ltm.chapterbreak.scenario import ChapterBreak
from longspan.scenarios.ltm.colours import Colours
from longspan.scenarios.ltm.jokes import Jokes
from longspan.scenarios.ltm.locations.scenario import Locations
from longspan.scenarios.ltm.name_list import NameList
from longspan.scenarios.ltm.prospective_memory import ProspectiveMemory
from longspan.scenarios.ltm.sally_anne import SallyAnne
from longspan.scenarios.ltm.shopping import Shopping
from longspan.scenarios.ltm.spy_meeting import SpyMeeting
from longspan.scenarios.ltm.trigger_response import TriggerResponse
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.tables import Table
from longspan.simulator.contract.scenario import Scenario
from longspan.simulator.results.papers import Cell, Reproduction, Rules

__all__ = ["reproduce"]

Key = TypeVar("Key")
Value = TypeVar("Value")

PAPER: Final = "goodai-ltm"

TOLERANCE: Final = 1e-3
"""Shares that differ by less count as equal. Some were recorded to three digits."""


_GRADING: Final[tuple[type[Scenario], ...]] = (
    ChapterBreak,
    Colours,
    Jokes,
    Locations,
    NameList,
    ProspectiveMemory,
    SallyAnne,
    Shopping,
    SpyMeeting,
    TriggerResponse,
)
"""The scenarios whose graders take facts and a record. A restaurant visit is graded by `restaurant.grade_record`."""


@final
class _GradedTest(NamedTuple):
    """A recorded test with our grade. `ours` is in [0, 1]; `category` is the kind of disagreement, or ""."""

    record: TestRecord
    scenario: str
    ours: float
    reason: str
    category: str
    phases: tuple[restaurant.Phase, ...] = ()

    @property
    def exact(self) -> bool:
        return abs(self.ours - self.record.share) < TOLERANCE


def reproduce(paths: Sequence[Path], rules: Rules) -> Reproduction:
    """Grade recorded tests again (result files, or a results folder with its runstats) and compute the paper's Table 1.

    A score is the sum over the datasets of the mean over their tests. Its spread is the sum of the datasets' population
    standard deviations. The LTM score is the mean number of tokens of the tests passed in full (GoodAI, section 4). Raises
    InputError for files that are not as published.
    """
    records = read_records(paths)
    pool = [test.expected_responses for test in records if SCENARIOS.get(test.dataset) == "spy_meeting"]
    grade = _Grader(rules, pool)
    graded = [grade(test) for test in records]
    costs = run_stats(paths)
    cells = [*_agreement(graded), *_phases(graded), *_scores(graded), *_costs(costs)]
    comparisons = [_disagreements(graded), _agreement_table(graded), _categories(graded), _phase_table(graded)]
    tables = [*comparisons, _score_table(graded, costs), _differences(graded)]
    return Reproduction(cells=cells, tables=[table for table in tables if table.rows])


@final
class _Grader:
    """Grades recorded tests by the paper's rules or longspan's."""

    def __init__(self, rules: Rules, pool: Sequence[Sequence[Sequence[str]]]) -> None:
        self._pool = pool
        self._scenarios: dict[str, Scenario] = {
            cls.name: cls.model_validate({"rules": rules} if "rules" in cls.model_fields else {}) for cls in _GRADING
        }

    def __call__(self, test: TestRecord) -> _GradedTest:
        name = SCENARIOS.get(test.dataset)
        if name is None:
            raise InputError(f"{test.agent}: unknown dataset {test.dataset!r:.60}; known are {', '.join(SCENARIOS)}")
        if name == "restaurant":
            visit = restaurant.grade_record(test)
            return _GradedTest(test, name, visit.score, visit.reason, visit.category or "", visit.phases)
        played = make_record(test).readable()
        known = make_facts(test.dataset, [exchange.text for exchange in played.exchanges], test.expected_responses, pool=self._pool)
        given = self._scenarios[name].grade(known, played)
        ours = given.score if given.score is not None else 0.0
        return _GradedTest(test, name, ours, given.reason, _category(test, ours))


def _category(test: TestRecord, ours: float) -> str:
    """Return the kind of a disagreement, or ""."""
    if abs(ours - test.share) < TOLERANCE:
        return ""
    if test.auto_score is not None and abs(ours - test.auto_share) < TOLERANCE:
        return "corrected by hand: ours is the machine's own score"
    if test.auto_score is not None:
        return "corrected by hand"
    return "ours is higher" if ours > test.share else "ours is lower"


# ---- cells


def _cell(table: str, row: str, column: str, ours: float | None, n: int, published: float | None = None) -> Cell:
    return Cell(paper=PAPER, table=table, row=row, column=column, ours=None if ours is None else round(ours, 6), published=published, n=n)


def _agreement(graded: Sequence[_GradedTest]) -> Iterable[Cell]:
    for name, group in _by(graded, lambda test: test.scenario).items():
        yield _cell("agreement", name, "exact", fmean(test.exact for test in group), len(group))
        yield _cell("agreement", name, "exact_auto", fmean(abs(t.ours - t.record.auto_share) < TOLERANCE for t in group), len(group))
        yield _cell("agreement", name, "mean_abs_diff", fmean(abs(test.ours - test.record.share) for test in group), len(group))


def _phases(graded: Sequence[_GradedTest]) -> Iterable[Cell]:
    phases = [phase for test in graded for phase in test.phases]
    for name, group in [*_by(phases, lambda phase: phase.name).items(), *([("all", phases)] if phases else [])]:
        yield _cell("restaurant_phases", name, "exact", fmean(phase.ours == phase.theirs for phase in group), len(group))


def _scores(graded: Sequence[_GradedTest]) -> Iterable[Cell]:
    for (agent, benchmark), group in _by(graded, lambda test: (test.record.agent, test.record.benchmark)).items():
        ours, spread = _sums(group, lambda test: test.ours)
        published = printed_score(agent, benchmark)
        yield _cell("scores", agent, benchmark, ours, len(group), published.score if published else None)
        yield _cell("spread", agent, benchmark, spread, len(group), published.std if published else None)
        theirs = _sums(group, lambda test: test.record.points)
        yield from (
            _cell(f"recorded_{table}", agent, benchmark, value, len(group))
            for table, value in zip(("scores", "spread"), theirs, strict=True)
        )
        full = [test.record.tokens for test in group if test.ours > 1 - TOLERANCE]
        yield _cell("ltm_score", agent, benchmark, fmean(full) if full else None, len(full))


def _costs(costs: Mapping[tuple[str, str], RunStats]) -> Iterable[Cell]:
    for (benchmark, agent), stats in costs.items():
        yield _cell("cost_usd", agent, benchmark, stats.agent_costs_usd, 1)
        yield _cell("duration_s", agent, benchmark, stats.duration, 1)


def _sums(group: Sequence[_GradedTest], value: Callable[[_GradedTest], float]) -> tuple[float, float]:
    """Return the sums of the datasets' means and of their population standard deviations."""
    by_dataset = [[value(test) for test in tests] for tests in _by(group, lambda test: test.scenario).values()]
    return sum(map(fmean, by_dataset)), sum(map(pstdev, by_dataset))


def _by(values: Iterable[Value], key: Callable[[Value], Key]) -> dict[Key, list[Value]]:
    """Group the values. Groups come in the order of their first values."""
    groups: dict[Key, list[Value]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return groups


# ---- tables


def _short(agent: str) -> str:
    """Return an agent's folder name without the parts that all names share: "LTM claude-3-opus 16384"."""
    for long, brief in _BRIEF.items():
        agent = agent.replace(long, brief)
    return agent


_BRIEF: Final = {"LLMChatSession - ": "", "LTMAgentWrapper - ": "LTM ", " - QG_JSON_USER_INFO": "", "together_ai-": "", " - ": " "}


def _agreement_table(graded: Sequence[_GradedTest]) -> Table:
    rows = []
    for name, group in _by(graded, lambda test: test.scenario).items():
        exact, auto, off = (cell.ours or 0.0 for cell in _agreement(group))
        rows.append([name, str(len(group)), f"{exact:.1%}", f"{auto:.1%}", f"{off:.3f}"])
    columns = ["scenario", "tests", "as recorded", "as before manual corrections", "mean difference"]
    return Table(title="Agreement with the recorded scores", columns=columns, rows=rows)


def _disagreements(graded: Sequence[_GradedTest]) -> Table:
    rows = [
        [
            test.scenario,
            f"{test.record.benchmark}, {_short(test.record.agent)}, {test.record.example}",
            f"recorded {test.record.share:.2f}, ours {test.ours:.2f}",
            test.category,
            test.reason,
            test.record.why[:300],
        ]
        for test in graded
        if not test.exact
    ]
    columns = ["scenario", "test", "scores", "category", "our reason", "theirs"]
    return Table(title="Where we disagree", columns=columns, rows=rows, heads=4)


def _categories(graded: Sequence[_GradedTest]) -> Table:
    groups = _by((test for test in graded if not test.exact), lambda test: (test.scenario, test.category))
    rows = [[scenario, category, str(len(group))] for (scenario, category), group in sorted(groups.items())]
    return Table(title="Disagreements by category", columns=["scenario", "category", "tests"], rows=rows)


def _phase_table(graded: Sequence[_GradedTest]) -> Table:
    rows = [[cell.row, str(cell.n), f"{cell.ours or 0.0:.1%}"] for cell in _phases(graded)]
    return Table(title="Restaurant, phase by phase", columns=["phase", "reached", "as recorded"], rows=rows)


def _score_table(graded: Sequence[_GradedTest], costs: Mapping[tuple[str, str], RunStats]) -> Table:
    """Return the table of our scores next to the recorded and the printed ones."""
    rows = []
    for (benchmark, agent), group in sorted(_by(graded, lambda test: (test.record.benchmark, test.record.agent)).items()):
        ours, theirs = _sums(group, lambda test: test.ours), _sums(group, lambda test: test.record.points)
        published = printed_score(agent, benchmark)
        stats = costs.get((benchmark, agent))
        full = [test.record.tokens for test in group if test.ours > 1 - TOLERANCE]
        rows.append(
            [
                benchmark,
                _short(agent),
                f"{ours[0]:.2f} ± {ours[1]:.2f}",
                f"{theirs[0]:.2f} ± {theirs[1]:.2f}",
                f"{published.score} ± {published.std}" if published else "not printed",
                f"{fmean(full):,.0f}" if full else "",
                f"${stats.agent_costs_usd:.2f}, {stats.duration:,.0f} s" if stats else "",
            ]
        )
    columns = ["benchmark", "agent", "ours", "recorded", "printed", "LTM score (tokens)", "cost and time"]
    return Table(title="Scores: the sum over the datasets, ± the sum of their standard deviations", columns=columns, rows=rows)


def _differences(graded: Sequence[_GradedTest]) -> Table:
    """Return the table that explains differences from the recorded scores, in points by scenario and kind of disagreement."""
    rows = []
    for (benchmark, agent), group in sorted(_by(graded, lambda test: (test.record.benchmark, test.record.agent)).items()):
        sizes = {name: len(tests) for name, tests in _by(group, lambda test: test.scenario).items()}
        off = [test for test in group if not test.exact]
        for (scenario, category), tests in _by(off, lambda test: (test.scenario, test.category)).items():
            difference = sum(test.ours - test.record.share for test in tests) / sizes[scenario]
            rows.append([benchmark, _short(agent), scenario, f"{difference:+.2f}", category])
    return Table(title="What makes our scores differ", columns=["benchmark", "agent", "scenario", "points", "why"], rows=rows)
