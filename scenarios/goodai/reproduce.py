"""The paper's scores again, from recorded transcripts: graded by our rules, set beside what was recorded and printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, pstdev
from typing import Final, NamedTuple, TypeVar, final

from longspan.scenarios.goodai import restaurant
from longspan.scenarios.goodai.facts import SCENARIOS, facts, record
from longspan.scenarios.goodai.files import RunStats, TestRecord, read_records, run_stats
from longspan.scenarios.goodai.table1 import printed
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
from longspan.simulator.errors import InputError
from longspan.simulator.interop.papers import Cell, Reproduction, Rules
from longspan.simulator.scenario import Scenario
from longspan.simulator.tables import Table

__all__ = ["reproduce"]

Key = TypeVar("Key")
Value = TypeVar("Value")

PAPER: Final = "goodai-ltm"

EXACT: Final = 1e-3
"""Shares that differ by less are the same: some are recorded to three digits."""


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
"""The scenarios whose graders take facts and a record; a restaurant's visit is graded by `restaurant.grade_record`."""


@final
class _Graded(NamedTuple):
    """A recorded test with our grade of it. `ours` in [0, 1]; `category` says of what kind a disagreement is."""

    record: TestRecord
    scenario: str
    ours: float
    reason: str
    category: str
    phases: tuple[restaurant.Phase, ...] = ()

    @property
    def exact(self) -> bool:
        return abs(self.ours - self.record.share) < EXACT


def reproduce(paths: Sequence[Path], rules: Rules) -> Reproduction:
    """Grade recorded tests again (result files, or a results folder with its runstats) and set up the paper's Table 1.

    A score is the sum over the datasets of the mean over their tests, its spread the sum of the datasets' population
    standard deviations, the LTM score the mean tokens of the tests passed in full (GoodAI, section 4). Raises InputError.
    """
    records = read_records(paths)
    pool = [each.expected_responses for each in records if SCENARIOS.get(each.dataset) == "spy_meeting"]
    grade = _Grader(rules, pool)
    graded = [grade(each) for each in records]
    costs = run_stats(paths)
    cells = [*_agreement(graded), *_phases(graded), *_scores(graded), *_costs(costs)]
    shown = [_disagreements(graded), _agreement_table(graded), _categories(graded), _phase_table(graded)]
    tables = [*shown, _score_table(graded, costs), _shortfalls(graded)]
    return Reproduction(cells=cells, tables=[table for table in tables if table.rows])


@final
class _Grader:
    """Grades recorded tests by a paper's rules or ours."""

    def __init__(self, rules: Rules, pool: Sequence[Sequence[Sequence[str]]]) -> None:
        self._pool = pool
        self._scenarios: dict[str, Scenario] = {
            cls.name: cls.model_validate({"rules": rules} if "rules" in cls.model_fields else {}) for cls in _GRADING
        }

    def __call__(self, test: TestRecord) -> _Graded:
        name = SCENARIOS.get(test.dataset)
        if name is None:
            raise InputError(f"{test.agent}: there is no dataset {test.dataset!r:.60}; there are {', '.join(SCENARIOS)}")
        if name == "restaurant":
            visit = restaurant.grade_record(test)
            return _Graded(test, name, visit.score, visit.reason, visit.category or "", visit.phases)
        played = record(test)
        known = facts(test.dataset, [each.text for each in played.exchanges], test.expected_responses, pool=self._pool)
        given = self._scenarios[name].grade(known, played)
        ours = given.score if given.score is not None else 0.0
        return _Graded(test, name, ours, given.reason, _category(test, ours))


def _category(test: TestRecord, ours: float) -> str:
    """Of what kind a disagreement is; empty where there is none."""
    if abs(ours - test.share) < EXACT:
        return ""
    if test.auto_score is not None and abs(ours - test.auto_share) < EXACT:
        return "corrected by hand: ours is the machine's own score"
    if test.auto_score is not None:
        return "corrected by hand"
    return "ours is higher" if ours > test.share else "ours is lower"


# ---- cells


def _cell(table: str, row: str, column: str, ours: float | None, n: int, published: float | None = None) -> Cell:
    return Cell(paper=PAPER, table=table, row=row, column=column, ours=None if ours is None else round(ours, 6), published=published, n=n)


def _agreement(graded: Sequence[_Graded]) -> Iterable[Cell]:
    for name, group in _by(graded, lambda each: each.scenario).items():
        yield _cell("agreement", name, "exact", fmean(each.exact for each in group), len(group))
        yield _cell("agreement", name, "exact_auto", fmean(abs(g.ours - g.record.auto_share) < EXACT for g in group), len(group))
        yield _cell("agreement", name, "mean_abs_diff", fmean(abs(each.ours - each.record.share) for each in group), len(group))


def _phases(graded: Sequence[_Graded]) -> Iterable[Cell]:
    found = [phase for each in graded for phase in each.phases]
    for name, group in [*_by(found, lambda phase: phase.name).items(), *([("all", found)] if found else [])]:
        yield _cell("restaurant_phases", name, "exact", fmean(phase.ours == phase.theirs for phase in group), len(group))


def _scores(graded: Sequence[_Graded]) -> Iterable[Cell]:
    for (agent, benchmark), group in _by(graded, lambda each: (each.record.agent, each.record.benchmark)).items():
        ours, spread = _sums(group, lambda each: each.ours)
        published = printed(agent, benchmark)
        yield _cell("scores", agent, benchmark, ours, len(group), published.score if published else None)
        yield _cell("spread", agent, benchmark, spread, len(group), published.std if published else None)
        full = [each.record.tokens for each in group if each.ours > 1 - EXACT]
        yield _cell("ltm_score", agent, benchmark, fmean(full) if full else None, len(full))


def _costs(costs: Mapping[tuple[str, str], RunStats]) -> Iterable[Cell]:
    for (benchmark, agent), stats in costs.items():
        yield _cell("cost_usd", agent, benchmark, stats.agent_costs_usd, 1)
        yield _cell("duration_s", agent, benchmark, stats.duration, 1)


def _sums(group: Sequence[_Graded], value: Callable[[_Graded], float]) -> tuple[float, float]:
    """The datasets' means and population standard deviations, each summed."""
    by_dataset = [[value(each) for each in tests] for tests in _by(group, lambda each: each.scenario).values()]
    return sum(map(fmean, by_dataset)), sum(map(pstdev, by_dataset))


def _by(values: Iterable[Value], key: Callable[[Value], Key]) -> dict[Key, list[Value]]:
    """The values in groups, in the order in which each first comes."""
    groups: dict[Key, list[Value]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return groups


# ---- tables


def _short(agent: str) -> str:
    """An agent's folder name without what all share: "LTM claude-3-opus 16384"."""
    for long, brief in _BRIEF.items():
        agent = agent.replace(long, brief)
    return agent


_BRIEF: Final = {"LLMChatSession - ": "", "LTMAgentWrapper - ": "LTM ", " - QG_JSON_USER_INFO": "", "together_ai-": "", " - ": " "}


def _agreement_table(graded: Sequence[_Graded]) -> Table:
    rows = []
    for name, group in _by(graded, lambda each: each.scenario).items():
        exact, auto, off = (cell.ours or 0.0 for cell in _agreement(group))
        rows.append([name, str(len(group)), f"{exact:.1%}", f"{auto:.1%}", f"{off:.3f}"])
    columns = ["scenario", "tests", "as recorded", "as before corrections by hand", "mean difference"]
    return Table(title="Agreement with the recorded scores", columns=columns, rows=rows)


def _disagreements(graded: Sequence[_Graded]) -> Table:
    rows = [
        [
            each.scenario,
            f"{each.record.benchmark}, {_short(each.record.agent)}, {each.record.example}",
            f"recorded {each.record.share:.2f}, ours {each.ours:.2f}",
            each.category,
            each.reason,
            each.record.why[:300],
        ]
        for each in graded
        if not each.exact
    ]
    columns = ["scenario", "test", "scores", "category", "our reason", "theirs"]
    return Table(title="Where we disagree", columns=columns, rows=rows, heads=4)


def _categories(graded: Sequence[_Graded]) -> Table:
    groups = _by((each for each in graded if not each.exact), lambda each: (each.scenario, each.category))
    rows = [[scenario, category, str(len(group))] for (scenario, category), group in sorted(groups.items())]
    return Table(title="Disagreements by category", columns=["scenario", "category", "tests"], rows=rows)


def _phase_table(graded: Sequence[_Graded]) -> Table:
    rows = [[cell.row, str(cell.n), f"{cell.ours or 0.0:.1%}"] for cell in _phases(graded)]
    return Table(title="Restaurant, phase by phase", columns=["phase", "reached", "as recorded"], rows=rows)


def _score_table(graded: Sequence[_Graded], costs: Mapping[tuple[str, str], RunStats]) -> Table:
    """Ours beside the printed and the recorded ones."""
    rows = []
    for (benchmark, agent), group in sorted(_by(graded, lambda each: (each.record.benchmark, each.record.agent)).items()):
        ours, theirs = _sums(group, lambda each: each.ours), _sums(group, lambda each: each.record.share)
        published = printed(agent, benchmark)
        stats = costs.get((benchmark, agent))
        full = [each.record.tokens for each in group if each.ours > 1 - EXACT]
        rows.append(
            [
                benchmark,
                _short(agent),
                f"{ours[0]:.2f} ± {ours[1]:.2f}",
                f"{theirs[0]:.2f} ± {theirs[1]:.2f}",
                f"{published.score} ± {published.std}" if published else "not printed",
                f"{fmean(full):,.0f}" if full else "",
                f"{stats.agent_costs_usd:.2f} $, {stats.duration:,.0f} s" if stats else "",
            ]
        )
    columns = ["benchmark", "agent", "ours", "recorded", "printed", "LTM score (tokens)", "cost and time"]
    return Table(title="Scores: the sum over the datasets, ± the sum of their standard deviations", columns=columns, rows=rows)


def _shortfalls(graded: Sequence[_Graded]) -> Table:
    """Why our scores are not the recorded ones: what each kind of disagreement in each scenario takes or gives."""
    rows = []
    for (benchmark, agent), group in sorted(_by(graded, lambda each: (each.record.benchmark, each.record.agent)).items()):
        sizes = {name: len(tests) for name, tests in _by(group, lambda each: each.scenario).items()}
        off = [each for each in group if not each.exact]
        for (scenario, category), tests in _by(off, lambda each: (each.scenario, each.category)).items():
            difference = sum(each.ours - each.record.share for each in tests) / sizes[scenario]
            rows.append([benchmark, _short(agent), scenario, f"{difference:+.2f}", category])
    return Table(title="What makes our scores differ", columns=["benchmark", "agent", "scenario", "points", "why"], rows=rows)
