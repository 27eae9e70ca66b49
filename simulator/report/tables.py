"""A comparison as tables for people, at the terminal and in Markdown, and as one CSV file for programs."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, get_args

from longspan.simulator.analysis.comparing import Cell, Comparison, Pair
from longspan.simulator.analysis.graded_runs import Column
from longspan.simulator.analysis.groups import Group
from longspan.simulator.analysis.spreadsheet import write_csv
from longspan.simulator.analysis.statistics import ALPHA, least_conversations
from longspan.simulator.grading.grades import Status
from longspan.simulator.tables import Table
from longspan.simulator.terminal import visible

__all__ = ["CSV_COLUMNS", "as_csv", "as_markdown", "notes", "one_line", "tables"]

CSV_COLUMNS: Final = (
    *("table", "isolated", "span", "name", "agent", "other"),
    *("score", "low", "high", "std", "interval_low", "interval_high", "interval_by", "maximum", "share", "chance"),
    *("runs", "tests", *get_args(Status), "certified", "at_distance", "cost_usd"),
    *("difference", "conversations", "p", "p_holm", "p_of_tests", "more_conversations"),
)
"""The columns of the CSV, which holds all tables one after another; docs/comparing.md describes them."""

Row = dict[str, Any]


PAIRS_NOTE: Final = (
    "p is over whole conversations. Significant: p below 0.05 after Holm's correction. More conversations needed: for a significant "
    "difference in four of five cases, if the true one is the observed one."
)

TESTS_NOTE: Final = "The p of these tests takes them one by one: it is about these tests, not about other conversations, and not corrected."


def one_line(text: str) -> str:
    """An untrusted text in one line, with control characters replaced by their code points."""
    return visible(" ".join(text.split()))


def tables(comparison: Comparison) -> list[Table]:
    """The tables for people, the most important first."""
    shown = [_scores(comparison), _shares(comparison), _tests(comparison), *(_pairs(comparison, column) for column in comparison.columns)]
    for column in comparison.columns:
        shown.append(_groups(f"Scenarios{column.at}", "scenario", comparison.scenarios[column], comparison.agents))
    for column in comparison.columns:
        shown.append(_groups(f"Skills{column.at}", "skill", comparison.skills[column], comparison.agents))
    shown.append(_groups("Evidence distance, over all spans", "mean distance of a test", comparison.distances, comparison.agents))
    return [table for table in [*shown, *comparison.own] if table.rows]


def notes(comparison: Comparison) -> list[str]:
    """Notes on the tables: what differs between the runs, what was left out, how intervals are made."""
    lines = [f"{warning[0].upper()}{warning[1:]}" for warning in comparison.warnings]
    lines += [f"Left out: {run.why}" for run in comparison.unusable]
    unscored = sum(count for cell in comparison.cells.values() for status, count in cell.statuses.items() if status != "scored")
    if unscored:
        lines.append(f"{unscored:,} tests have no score: they count as 0 in ranks and pairs, and as 1 at the upper end of a range")
    by = {cell.interval.by for cell in comparison.cells.values() if cell.interval is not None}
    if "conversations" in by:
        rest = ", or of tests if an agent has only one conversation" if len(by) > 1 else ""
        lines.append(f"Intervals: 95%, from the spread of whole conversations{rest}; of two or three they can only be wide")
    elif by:
        lines.append("Intervals: 95%, from the spread of the tests of a single conversation: they say nothing about other conversations")
    least = least_conversations(len(comparison.pairs) or 1)
    if few := {pair.conversations for pair in comparison.pairs if pair.conversations < least}:
        have = f"{min(few)} to {max(few)}" if len(few) > 1 else str(*few)
        among = f" of one of {len(comparison.pairs)} pairs" if len(comparison.pairs) > 1 else ""
        more = f"{least - min(few)} more seed{'s' * (least - min(few) > 1)}"
        common = f"{have} conversation{'s' * (max(few) > 1)} in common"
        lines.append(f"Pairs: {common} cannot show a difference{among}, however large; {least} can: play {more}")
    return [one_line(line) for line in lines]


# ---- for people


def _scores(comparison: Comparison) -> Table:
    """Agents by spans, as in the paper's Table 1 (GoodAI). Each score has its spread and its interval."""
    columns = ["agent"]
    chance = ["chance"]
    for column in comparison.columns:
        cells = [cell for (_, place), cell in comparison.cells.items() if place == column]
        maxima = sorted({cell.maximum for cell in cells})
        columns.append(f"{column}, of {'/'.join(map(str, maxima))}")
        chance.append(_span(min(cell.chance for cell in cells), max(cell.chance for cell in cells)))
    rows = [[one_line(agent), *(_score(comparison.cells.get((agent, c))) for c in comparison.columns)] for agent in comparison.agents]
    title = "Scores ± the sum of the scenarios' standard deviations [95% interval]"
    return Table(title=title, columns=columns, rows=[*rows, chance])


def _score(cell: Cell | None) -> str:
    if cell is None:
        return ""
    between = f" [{', '.join(cell.interval.ends())}]" if cell.interval is not None else ""
    return f"{_span(*cell.bounds)}{f' ± {cell.spread:.2f}' if cell.spread is not None else ''}{between}"


def _shares(comparison: Comparison) -> Table:
    """The scores as shares of full marks. Without rows if all have the same maximum."""
    columns = ["agent", *map(str, comparison.columns)]
    rows = [[one_line(agent), *(_share(comparison.cells.get((agent, c))) for c in comparison.columns)] for agent in comparison.agents]
    return Table(title="Scores as shares of full marks [95% interval]", columns=columns, rows=rows if comparison.mixed else [])


def _share(cell: Cell | None) -> str:
    if cell is None:
        return ""
    low, high = (f"{bound / cell.maximum:.1%}" for bound in cell.bounds)
    between = " [{}%, {}%]".format(*cell.interval.ends(1, cell.maximum / 100)) if cell.interval is not None else ""
    return f"{low if low == high else f'{low}–{high}'}{between}"


def _tests(comparison: Comparison) -> Table:
    """The number of tests behind each score, by status, and what they cost."""
    statuses: list[Status] = [s for s in get_args(Status) if s == "scored" or any(s in c.statuses for c in comparison.cells.values())]
    rows = [
        [
            one_line(agent),
            str(column),
            str(cell.runs),
            str(cell.tests),
            *(str(cell.statuses.get(status, 0)) for status in statuses),
            f"{cell.certified:.0%}",
            f"{cell.at_distance:.0%}",
            "–" if cell.cost_usd is None else f"{cell.cost_usd:.4f}",
        ]
        for agent in comparison.agents
        for column in comparison.columns
        if (cell := comparison.cells.get((agent, column))) is not None
    ]
    names = [status.replace("_", " ") for status in statuses]
    columns = ["agent", "span", "runs", "tests", *names, "certified", "at distance", "cost per run, $"]
    return Table(title="Tests behind the scores", columns=columns, rows=rows)


def _pairs(comparison: Comparison, column: Column) -> Table:
    pairs = [pair for pair in comparison.pairs if pair.column == column]
    few = any(pair.p_of_tests is not None for pair in pairs)
    rows = [
        [
            one_line(pair.better),
            one_line(pair.other),
            f"{pair.difference:.2f}",
            str(pair.conversations),
            f"{pair.tests}{f' ({pair.unscored} without a score)' if pair.unscored else ''}",
            _p(pair.p),
            _p(pair.corrected),
            *([_p(pair.p_of_tests)] if few else []),
            _more(pair),
        ]
        for pair in pairs
    ]
    tests = ["p of these tests"] if few else []
    columns = ["higher", "lower", "difference", "conversations", "same tests", "p", "p (Holm)", *tests, "more conversations needed"]
    correction = f", Holm-corrected for all {len(comparison.pairs)} pairs" if len(comparison.pairs) > 1 else ""
    title = f"Pairs{column.at}: paired permutation tests of conversations{correction}"
    return Table(title=title, columns=columns, rows=rows, note=f"{PAIRS_NOTE} {TESTS_NOTE}" if few else PAIRS_NOTE if rows else "")


def _more(pair: Pair) -> str:
    if pair.corrected < ALPHA:
        return "significant"
    return "equal scores" if pair.more is None else f"{max(1, pair.more):,}"


def _groups(title: str, what: str, groups: Mapping[str, Mapping[str, Group]], agents: Sequence[str]) -> Table:
    columns = [agent for agent in agents if any(agent in group for group in groups.values())]
    rows = []
    for name, by_agent in groups.items():
        chance = max(group.chance for group in by_agent.values())
        rows.append([one_line(name), *(_mean(by_agent.get(agent)) for agent in columns), f"{chance:.2f}"])
    return Table(title=f"{title}: mean score (tests)", columns=[what, *map(one_line, columns), "chance"], rows=rows)


def _mean(group: Group | None) -> str:
    return "" if group is None else f"{_span(group.low, group.high)} ({group.tests})"


def _span(low: float, high: float) -> str:
    return f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f}–{high:.2f}"


def _p(value: float | None) -> str:
    if value is None:
        return ""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


# ---- Markdown


def as_markdown(comparison: Comparison) -> str:
    """The tables and notes in Markdown. Untrusted text is escaped: it cannot become HTML or break a table."""
    parts = [f"# {comparison.suite}: {len(comparison.agents)} agents, {comparison.runs} runs"]
    for table in tables(comparison):
        rules = ["---:" if right else "---" for right in table.numeric]
        lines = [f"| {' | '.join(map(_escaped, row))} |" for row in (table.columns, *table.rows)]
        parts.append("\n".join([f"## {_escaped(table.title)}", "", lines[0], f"| {' | '.join(rules)} |", *lines[1:]]))
    if lines := notes(comparison):
        parts.append("\n".join(["## Notes", "", *(f"- {_escaped(note)}" for note in lines)]))
    return "\n\n".join(parts) + "\n"


def _escaped(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*\[\]|~])", r"\\\1", text)


# ---- CSV


def as_csv(comparison: Comparison) -> str:
    """All figures in one CSV file. A cell that does not apply is empty."""
    file = io.StringIO()
    write_csv(file, CSV_COLUMNS, _rows(comparison))
    return file.getvalue()


def _rows(comparison: Comparison) -> Iterable[Row]:
    for agent in comparison.agents:
        for column in comparison.columns:
            if (cell := comparison.cells.get((agent, column))) is not None:
                yield _place("scores", column, agent=agent) | _cell_row(cell)
    for pair in comparison.pairs:
        yield _place("pairs", pair.column, agent=pair.better, other=pair.other) | {
            "tests": pair.tests,
            "unscored": pair.unscored,
            "difference": pair.difference,
            "conversations": pair.conversations,
            "p": pair.p,
            "p_holm": pair.corrected,
            "p_of_tests": pair.p_of_tests,
            "more_conversations": pair.more,
        }
    for column in comparison.columns:
        yield from _group_rows("scenarios", column, comparison.scenarios[column])
        yield from _group_rows("skills", column, comparison.skills[column])
    yield from _group_rows("distances", None, comparison.distances)


def _cell_row(cell: Cell) -> Row:
    low, high = cell.bounds
    between = cell.interval
    return {
        "score": cell.score,
        "low": low,
        "high": high,
        "std": cell.spread,
        "interval_low": between.low if between else None,
        "interval_high": between.high if between else None,
        "interval_by": between.by if between else None,
        "maximum": cell.maximum,
        "share": None if cell.score is None else cell.score / cell.maximum,
        "chance": cell.chance,
        "runs": cell.runs,
        "tests": cell.tests,
        **{status: cell.statuses.get(status, 0) for status in get_args(Status)},
        "certified": cell.certified,
        "at_distance": cell.at_distance,
        "cost_usd": cell.cost_usd,
    }


def _group_rows(table: str, column: Column | None, groups: Mapping[str, Mapping[str, Group]]) -> Iterable[Row]:
    for name, by_agent in groups.items():
        for agent, group in by_agent.items():
            figures = {"low": group.low, "high": group.high, "std": group.std, "chance": group.chance, "tests": group.tests}
            score = group.low if group.std is not None else None
            yield _place(table, column, name=name, agent=agent) | {"score": score, "maximum": 1} | figures


def _place(table: str, column: Column | None, **names: str) -> Row:
    where = {} if column is None else {"isolated": column.isolated, "span": column.span}
    return {"table": table} | where | names
