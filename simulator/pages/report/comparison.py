"""A comparison as one HTML file with its figures. It loads nothing and contains no scripts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, final
from urllib.parse import quote

from longspan.simulator.base.document import MORE_RUNS
from longspan.simulator.pages.report.comparison_tables import comparison_notes, more_tables
from longspan.simulator.pages.report.contrast_words import Family, contrast_table, describe_contrast, describe_correction
from longspan.simulator.pages.report.curve import lay_out_alike
from longspan.simulator.pages.report.figures import FigureName, draw_figure, missing_figures
from longspan.simulator.pages.report.forest import draw_forest, forests_by_baseline
from longspan.simulator.pages.report.inline_svg import inline_svg
from longspan.simulator.pages.report.memory_pictures import split_bar
from longspan.simulator.pages.report.page import content_policy, page_environment
from longspan.simulator.results.analysis.groups import Group
from longspan.simulator.results.analysis.matrix import ScoreBounds
from longspan.simulator.results.analysis.stage_estimates import ShareEstimate
from longspan.simulator.results.graded_runs import Column
from longspan.simulator.results.measures.comparing import Comparison
from longspan.simulator.results.measures.memory_losses import OUTCOMES, Answers, LossCounts, Needles, losses_by_column, losses_note

__all__ = ["POLICY", "Links", "as_html", "links_from"]

STYLES: Final = ("base.css", "pictures.css", "compare.css")

POLICY: Final = content_policy((), STYLES)
"""The Content-Security-Policy of all comparison pages."""

CAPTIONS: Final[Mapping[FigureName, str]] = {
    "bars": "Scores by span, in percent of full marks, as in the paper's Figure 5. Lines are 95% intervals; pale ends are the possible "
    "points of tests without a score.",
    "spans": "Score by span, in percent of full marks, with 95% intervals.",
    "distance": "Expected score of a question by evidence distance, over all spans, with 95% intervals; lower to the right is forgetting.",
    "cost": "Score, in percent of full marks, by the cost of a run in dollars at list prices; up and to the left is better.",
    "trend": "By version (label, or else commit of the agent's code), in the order of the first runs, with 95% intervals. The reach is the "
    "furthest distance in tokens where half of the facts are recalled.",
}
"""The captions of a page's figures. The curves at its top have none."""
SHARES: Final = " Full marks differ between spans."

Groups = Sequence[tuple[str, Mapping[str, Needles | Answers]]]
"""Outcomes, by span and agent."""

MAX_TESTS: Final = 3_000
"""The maximum number of rows in the matrices of tests on a page."""


@final
class LossTable(NamedTuple):
    """A table of outcomes: its id, the counted unit, the outcomes of agents at each span, and the totals."""

    id: str
    unit: str
    groups: Groups
    whole: Mapping[str, int]


@final
class GridRow(NamedTuple):
    """A scenario's tests by agent, None for an agent that did not play it, and whether the agents' means differ."""

    name: str
    cells: list[Group | None]
    chance: float
    evidence: str
    differ: bool


@final
class Grid(NamedTuple):
    """Scenarios by agents in one column."""

    column: Column
    agents: list[str]
    rows: list[GridRow]


@final
@dataclass(frozen=True)
class Links:
    """The links of a page, each None if there is no such page.

    They lead to the report in a run's folder, to a test of two runs side by side, and to the list of runs. `files` has the same figures as
    files, by format. `title` is the name of the sweep or folder that is compared. `groups` is for runs of different tests: the name and the
    address of each comparison, and whether it is the current one.
    """

    report: Callable[[Path], str | None] = lambda run: None
    side_by_side: Callable[[Path, Path, str], str | None] = lambda one, other, test: None
    home: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    groups: Sequence[tuple[str, str, bool]] = ()


NO_FILES: Final[Mapping[str, str]] = {}

NOWHERE: Final = Links()
"""The links of a page without any."""


def links_from(folder: Path, title: str = "", files: Mapping[str, str] = NO_FILES) -> Links:
    """Return links from a file in `folder` to the existing reports in the runs' folders. `title` and `files` become fields of `Links`."""

    def report(run: Path) -> str | None:
        path = run / "report.html"
        return quote(os.path.relpath(path, folder.resolve()).encode("utf-8", "surrogateescape")) if path.is_file() else None

    return Links(report, title=title, files=files)


def as_html(comparison: Comparison, links: Links = NOWHERE, family: Family | None = None) -> str:
    """Return the page, with contrasts if any. Text from agents and files is escaped; in figures it is drawn as outlines."""
    left_out = missing_figures(comparison)
    pictures = [name for name in CAPTIONS if name not in left_out and (name != "spans" or len(comparison.columns) > 1)]
    captions = {name: f"{CAPTIONS[name]}{SHARES if comparison.mixed and name != 'distance' else ''}" for name in pictures}
    figures = {name: inline_svg(draw_figure(comparison, name, "svg", page=True), name, captions[name]) for name in pictures}
    shown, rows = [], 0
    for matrix in comparison.matrices:
        if (rows := rows + matrix.tests) <= MAX_TESTS:
            shown.append(matrix)
    reports = {folder: links.report(folder) for cell in comparison.cells.values() for _, folder in cell.folders}

    def test_in(run: Path, test: str) -> str | None:
        return f"{reports[run]}#test-{test}" if reports[run] is not None else None

    def side_by_side(scores: Mapping[str, ScoreBounds], test: str) -> str | None:
        """Return the page that compares a test's two best agents side by side."""
        runs = [scores[agent].runs[0] for agent in comparison.agents if agent in scores]
        return links.side_by_side(runs[0], runs[1], test) if len(runs) > 1 else None

    chance = {column: _chance(comparison, column) for column in comparison.columns}
    template = page_environment().get_template("compare.html.j2")
    return template.render(
        comparison=comparison,
        links=links,
        called=comparison.side.called,
        home=links.home,
        family=family,
        contrasts=None if family is None else contrast_table(family),
        sentences=[] if family is None else [describe_contrast(each, family.contrasts) for each in family.tested],
        correction="" if family is None else describe_correction(family.contrasts),
        forest=None if family is None else draw_forest(family.tested),
        against=forests_by_baseline(comparison),
        reports=reports,
        test_in=test_in,
        side_by_side=side_by_side,
        sides=any(side_by_side(scores, id) for matrix in shown for tests in matrix.scenarios.values() for id, scores in tests.items()),
        chance=chance,
        matrices=[(matrix, [agent for agent in comparison.agents if agent in matrix.agents]) for matrix in shown],
        hidden=len(comparison.matrices) - len(shown),
        lost=_loss_tables(comparison),
        recalled=_recall_by_column(comparison),
        remembering={agent for agent, _ in comparison.side.memories},
        scores=bool(comparison.side.answering),
        outcomes=OUTCOMES,
        split=split_bar,
        lost_note=losses_note(losses_by_column(comparison.side).values()),
        verdicts=[each for each in comparison.said.verdicts if family is None or each.label != MORE_RUNS],
        notes=comparison_notes(comparison, stated=family is not None),
        grids=_grids(comparison),
        tables=more_tables(comparison, stated=family is not None),
        figures=figures,
        leading=lay_out_alike(comparison.said.curves),
        captions=captions,
        policy=POLICY,
        styles=STYLES,
    )


def _grids(comparison: Comparison) -> list[Grid]:
    """Return a grid of scenarios by agents for each column; none if no agent has a score."""
    grids = []
    for column in comparison.columns if comparison.side.answering else []:
        groups = comparison.scenarios[column]
        agents = [agent for agent in comparison.side.answering if any(agent in by_agent for by_agent in groups.values())]
        rows = []
        for name, by_agent in sorted(groups.items()):
            cells = [by_agent.get(agent) for agent in agents]
            found = [cell for cell in cells if cell is not None]
            if found:
                differ = len({(f"{cell.low:.0%}", f"{cell.high:.0%}") for cell in found}) > 1 or len(found) < len(cells)
                distances = comparison.evidence[column].get(name)
                evidence = distances.in_tokens if distances is not None else "–"
                rows.append(GridRow(name, cells, max(cell.chance for cell in found), evidence, differ))
        grids.append(Grid(column, agents, rows))
    return grids


def _recall_by_column(comparison: Comparison) -> Mapping[tuple[str, Column], ShareEstimate]:
    """Return the recall of each memory in each column."""
    side = comparison.side
    found = {key: asked.estimate_found(side.k) for key, asked in side.memories.items()}
    return {key: estimate for key, estimate in found.items() if estimate is not None}


def _chance(comparison: Comparison, column: Column) -> float:
    """Return the score from guessing, as a share of full marks."""
    return max(cell.chance / cell.maximum for (_, place), cell in comparison.cells.items() if place == column)


def _loss_tables(comparison: Comparison) -> list[LossTable]:
    lost = losses_by_column(comparison.side)
    told = _by_column(comparison, lost, lambda lost: lost.needles if lost.tells != "nothing" else None)
    untold = _by_column(comparison, lost, lambda lost: lost.answers if lost.tells == "nothing" and lost.answers.asked else None)
    tables = [LossTable("memory", "needed", told, _sums(told)), LossTable("answers", "questions", untold, _sums(untold))]
    return [table for table in tables if table.groups]


def _by_column(
    comparison: Comparison, lost: Mapping[tuple[str, Column], LossCounts], counted: Callable[[LossCounts], Needles | Answers | None]
) -> Groups:
    """Return the counts for each agent at each span, with the spans' headings."""
    names = comparison.side.called.names
    groups = [
        (
            str(column),
            {names[agent]: counts for agent in comparison.agents if (found := lost.get((agent, column))) and (counts := counted(found))},
        )
        for column in comparison.columns
    ]
    return [(column, counts) for column, counts in groups if counts]


def _sums(groups: Groups) -> Counter[str]:
    whole: Counter[str] = Counter()
    for _, by_agent in groups:
        for counts in by_agent.values():
            whole.update(counts._asdict())
    return whole
