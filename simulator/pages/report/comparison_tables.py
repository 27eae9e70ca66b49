"""A comparison as tables for people, on the terminal and in Markdown, and as one CSV file for programs."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping
from typing import Final, get_args

from longspan.simulator.base.document import Data
from longspan.simulator.base.shares import format_interval, format_points, format_share_range
from longspan.simulator.base.sizes import format_tokens
from longspan.simulator.base.tables import Table
from longspan.simulator.results.analysis.distances import Distances
from longspan.simulator.results.analysis.spreadsheet import write_csv
from longspan.simulator.results.analysis.units import advise_generalising
from longspan.simulator.results.graded_runs import Column
from longspan.simulator.results.measures.against import against_rows, against_table
from longspan.simulator.results.measures.cells import Cell
from longspan.simulator.results.measures.comparing import Comparison
from longspan.simulator.results.measures.group_tables import Row, by_span, group_rows, one_line, place_columns, side_by_side
from longspan.simulator.results.measures.pair_tables import pair_row, pair_table
from longspan.simulator.results.result import Status

__all__ = [
    "COMMON_COLUMNS",
    "as_csv",
    "as_markdown",
    "as_rows",
    "comparison_notes",
    "comparison_tables",
    "escape_markdown",
    "more_tables",
    "scenario_tables",
    "tables_as_markdown",
]

COMMON_COLUMNS: Final = (
    *("table", "isolated", "span", "name", "agent", "other"),
    *("score", "low", "high", "std", "interval_low", "interval_high", "interval_by", "maximum", "share", "chance"),
    *("runs", "begun", "finished", "tests", *get_args(Status), "certified", "at_distance", "cost_usd"),
    *("evidence", "evidence_low", "evidence_high", "of_span", "of_span_low", "of_span_high", "span_used", "distance"),
    *("difference", "conversations", "questions", "p", "p_holm", "p_of_tests", "verdict", "more_conversations"),
)
"""The columns of the CSV that belong to no single figure; docs/reference/exports.md describes them."""


EVIDENCE_NOTE: Final = (
    "Evidence distance: tokens from a question to the furthest needle that it needs, with this agent's replies. Of span: the same as "
    "charged to every agent. Medians, with ranges in brackets. Span with replies: the median of the tests."
)


def comparison_tables(comparison: Comparison, *, brief: bool = False) -> list[Table]:
    """Return the tables for people, most important first. If `brief`, return only the first."""
    said, scores = comparison.said, _score_tables(comparison)
    best = [*said.first, *scores] if comparison.side.by_recall else [*scores, *said.first]
    found = [*best, *_against(comparison), *said.leading, *scenario_tables(comparison), *_facts(comparison, stated=False)]
    return [table for table in found if table.rows][: 1 if brief else None]


def _against(comparison: Comparison) -> list[Table]:
    return [against_table(comparison.side, comparison.against)] if comparison.against else []


def _score_tables(comparison: Comparison) -> list[Table]:
    """Return the tables of scores; none if no agent has a score. A note explains if they do not decide the ranking."""
    if not comparison.side.answering:
        return []
    return [_scores(comparison).model_copy(update={"note": comparison.answers})]


def scenario_tables(comparison: Comparison) -> list[Table]:
    """Return the shaded tables of mean scores by scenario.

    With one span there is one table for all agents, otherwise one table of scenarios by spans for each agent.
    """
    if not comparison.side.answering:
        return []
    if len(comparison.columns) == 1:
        (column,) = comparison.columns
        scenarios = side_by_side(f"Scenarios{column.at}", "scenario", comparison.scenarios[column], comparison.side)
        return [_with_evidence(scenarios, comparison.evidence[column])]
    return [*by_span("Scenarios", "scenario", comparison.side, comparison.scenarios), _evidence(comparison)]


def more_tables(comparison: Comparison, *, stated: bool = False) -> list[Table]:
    """Return the tables of differences from a baseline, of pairs, of the facts behind the scores, and of all other figures.

    If contrasts were `stated`, the tables do not forecast how many more conversations a pair needs.
    """
    found = [*_against(comparison), *_facts(comparison, stated=stated)]
    return [table for table in found if table.rows]


def _facts(comparison: Comparison, *, stated: bool) -> list[Table]:
    pairs = pair_table(
        "Pairs",
        comparison.pairs,
        comparison.side.called.names,
        several=len(comparison.columns) > 1,
        points=True,
        stated=stated,
    )
    return [pairs, _tests(comparison), *comparison.said.tables]


def comparison_notes(comparison: Comparison, *, stated: bool = False) -> list[str]:
    """Return notes on the tables: differences between the runs, omissions, and how intervals are made.

    If contrasts were `stated`, the notes do not recommend more seeds, since only the contrasts were to be tested.
    """
    agents = (*comparison.agents, *comparison.side.called.names.values())
    lines = [each if each.startswith(agents) else f"{each[0].upper()}{each[1:]}" for each in comparison.warnings]
    lines += [f"Left out: {run.why}" for run in comparison.unusable]
    tried = comparison.attempts.values()
    if tried and all(each.begun == each.finished == each.compared and not each.failed for each in tried):
        lines.append(f"Attempts: all {sum(each.begun for each in tried):,} runs of these agents and tests in these folders were finished")
    lines += [f"Data: {'; '.join(comparison.data)}"] if comparison.data else []
    lines += [comparison.narrow] if comparison.narrow else []
    lines += [] if comparison.side.answering or not comparison.answers else [comparison.answers]
    cells = [cell for (agent, _), cell in comparison.cells.items() if agent in comparison.side.answering]
    unscored = sum(count for cell in cells for status, count in cell.statuses.items() if status != "scored")
    if unscored:
        lines.append(f"{unscored:,} tests have no score: they count as 0 in ranks and pairs, and as 1 at the upper end of a range")
    by = {cell.interval.by for cell in comparison.cells.values() if cell.interval is not None}
    if "conversations" in by:
        rest = ", or of tests if an agent has only one conversation" if len(by) > 1 else ""
        lines.append(f"Intervals: 95%, from the spread of whole conversations{rest}; with two or three they are always wide")
    elif by:
        more = advise_generalising(run.manifest for run in comparison.side.runs)
        lines.append(f"Intervals: 95%, from the spread of tests in a single conversation: they cover only this one; {more}")
    if stated and comparison.pairs:
        for_all = f", corrected for all {len(comparison.pairs)} pairs" if len(comparison.pairs) > 1 else ""
        lines.append(f"Pairs: their tests are two-sided{for_all}, and may differ from the contrasts, which decide")
    return [one_line(line) for line in lines]


# ---- for people


def _scores(comparison: Comparison) -> Table:
    """Return a table of agents by spans, like the paper's Table 1 (GoodAI). Each score has its spread and its interval."""
    columns = ["agent"]
    chance = ["chance"]
    for column in comparison.columns:
        cells = [cell for (_, place), cell in comparison.cells.items() if place == column]
        maxima = sorted({cell.maximum for cell in cells})
        columns.append(f"{column}, of {'/'.join(map(str, maxima))}")
        shares, sums = [cell.chance / cell.maximum for cell in cells], [cell.chance for cell in cells]
        chance.append(f"{format_share_range(min(shares), max(shares))} · {format_points(min(sums), max(sums))}")
    rows = [
        [comparison.side.called.names[agent], *(_score(comparison.cells.get((agent, c))) for c in comparison.columns)]
        for agent in comparison.side.answering
    ]
    title = f"{_score_title(comparison)} in percent of full marks [95% interval] · points ± the sum of the scenarios' standard deviations"
    return Table(title=title, columns=columns, rows=[*rows, chance])


def _score_title(comparison: Comparison) -> str:
    return "Scores" if comparison.measured == "score" else f"Scores, {one_line(comparison.measured)},"


def _score(cell: Cell | None) -> str:
    if cell is None:
        return ""
    spread = f" ± {cell.spread:.2f}" if cell.spread is not None else ""
    return f"{format_share_range(*cell.share)}{format_interval(cell.interval, whole=cell.maximum)} · {format_points(*cell.bounds)}{spread}"


def _tests(comparison: Comparison) -> Table:
    """Return the number of tests behind each score, by status, and their cost."""
    statuses: list[Status] = [s for s in get_args(Status) if s == "scored" or any(s in c.statuses for c in comparison.cells.values())]
    rows = [
        [
            comparison.side.called.names[agent],
            str(column),
            str(cell.runs),
            str(cell.tests),
            *(str(cell.statuses.get(status, 0)) for status in statuses),
            cell.evidence.in_tokens,
            cell.evidence.of_span,
            "–" if cell.spans is None else format_tokens(cell.spans.median),
            *(["–" if cell.cost_usd is None else f"{cell.cost_usd:.4f}"] if comparison.priced else []),
        ]
        for agent in comparison.agents
        for column in comparison.columns
        if (cell := comparison.cells.get((agent, column))) is not None
    ]
    names = [status.replace("_", " ") for status in statuses]
    cost = ["cost per run, $"] if comparison.priced else []
    columns = ["agent", "span", "runs", "tests", *names, "evidence distance", "of span", "span with replies", *cost]
    title = f"Tests behind the {'scores' if comparison.side.answering else 'figures'}"
    return Table(title=title, columns=columns, rows=rows, note=EVIDENCE_NOTE)


def _with_evidence(table: Table, evidence: Mapping[str, Distances]) -> Table:
    """Return a table of scenarios with their evidence distances added."""
    rows = [[*row, found.in_tokens, found.of_span] for row, found in zip(table.rows, evidence.values(), strict=True)]
    shades = [[*row, None, None] for row in table.shades or []]
    return Table(title=table.title, columns=[*table.columns, "evidence distance", "of span"], rows=rows, shades=shades)


def _evidence(comparison: Comparison) -> Table:
    """Return the evidence distances of each scenario's questions, by span."""
    names = sorted({name for found in comparison.evidence.values() for name in found})
    cells = [[found[name].in_tokens if name in found else "" for found in comparison.evidence.values()] for name in names]
    rows = [[one_line(name), *row] for name, row in zip(names, cells, strict=True)]
    return Table(title="Evidence distance by scenario and span", columns=["scenario", *map(str, comparison.evidence)], rows=rows)


# ---- Markdown


def as_markdown(comparison: Comparison, *, brief: bool = False) -> str:
    """Return the tables and notes in Markdown. Untrusted text is escaped, so that it cannot become HTML, a link or a mention."""
    heading = f"# {escape_markdown(comparison.suite)}: {len(comparison.agents)} agents, {comparison.runs} runs"
    told = comparison.side.called.describe_omissions()
    sentences = [*(verdict.text for verdict in comparison.said.verdicts), *([told] if told else [])]
    return f"{heading}\n\n{tables_as_markdown(sentences, comparison_tables(comparison, brief=brief), comparison_notes(comparison))}"


def tables_as_markdown(sentences: Iterable[str], tables: Iterable[Table], notes: Iterable[str]) -> str:
    """Return sentences, tables and notes in Markdown, escaped."""
    parts = list(map(escape_markdown, sentences))
    for table in tables:
        rules = ["---:" if right else "---" for right in table.numeric]
        lines = [f"| {' | '.join(map(escape_markdown, row))} |" for row in (table.columns, *table.rows)]
        parts.append("\n".join([f"## {escape_markdown(table.title)}", "", lines[0], f"| {' | '.join(rules)} |", *lines[1:]]))
        parts += [escape_markdown(table.note)] if table.note else []
    if lines := [f"- {escape_markdown(note)}" for note in notes]:
        parts.append("\n".join(["## Notes", "", *lines]))
    return "\n\n".join(parts) + "\n"


_MARKED: Final = re.compile(
    r"[\\`*\[\]<>|~&#@$]"
    r"|(?<![^\W_])_|_(?![^\W_])"  # an underscore inside a word means nothing
    r"|:(?=//)|(?<=www)\.|^[-+=](?=\s|[-+=]|$)",
    re.IGNORECASE,
)
"""Matches characters that have a meaning in Markdown, or in GitHub's Markdown, where they stand."""

_NUMBERED: Final = re.compile(r"^(\d{1,9})([.)])(?=\s|$)")
"""Matches the beginning of an item in a numbered list."""


def escape_markdown(text: str) -> str:
    return _NUMBERED.sub(r"\1\\\2", _MARKED.sub(r"\\\g<0>", one_line(text)))


# ---- CSV


def as_csv(comparison: Comparison) -> str:
    """Return all figures as one CSV file. A cell that does not apply is empty."""
    file = io.StringIO()
    own = (name for data in (comparison.said.leading_data, comparison.said.data) for each in data for name in each.columns)
    rows = [_flatten(row) for row in _rows(comparison)]
    write_csv(file, [*COMMON_COLUMNS, *dict.fromkeys(name for name in own if name not in COMMON_COLUMNS)], rows)
    return file.getvalue()


def as_rows(comparison: Comparison) -> list[Row]:
    """Return the same figures as dicts, each with the columns that apply. `more_conversations` is None without a forecast."""
    always = {data.name: data.always for data in (*comparison.said.leading_data, *comparison.said.data)}
    return [
        {
            name: value
            for name, value in row.items()
            if value is not None or name == "more_conversations" or name in always.get(row["table"], ())
        }
        for row in _rows(comparison)
    ]


def _rows(comparison: Comparison) -> Iterable[Row]:
    for agent in comparison.agents:
        for column in comparison.columns:
            if (cell := comparison.cells.get((agent, column))) is not None:
                yield {"table": "scores"} | place_columns(column, agent=agent) | _cell_row(cell) | _attempts_row(comparison, agent, column)
    yield from _flatten_data(comparison.said.leading_data)
    for row in against_rows(comparison.side, comparison.against):
        yield {"table": "baseline"} | row
    for pair in comparison.pairs:
        yield {"table": "pairs"} | pair_row(pair)
    for column in comparison.columns:
        for row in group_rows(column, comparison.scenarios[column]):
            yield {"table": "scenarios"} | row | _evidence_row(comparison.evidence[column][row["name"]])
    yield from _flatten_data(comparison.said.data)


def _flatten_data(data: Iterable[Data]) -> Iterable[Row]:
    for each in data:
        yield from ({"table": each.name} | dict(row) for row in each.rows)


def _flatten(row: Row) -> Row:
    """Return a row with each estimate (a mapping with `value`, `low` and `high`) split into three columns."""
    flat: Row = {}
    for name, value in row.items():
        if isinstance(value, Mapping) and "value" in value:
            flat |= {name if part == "value" else f"{name}_{part}": each for part, each in value.items()}
        else:
            flat[name] = value
    return flat


def _attempts_row(comparison: Comparison, agent: str, column: Column) -> Row:
    tried = comparison.attempts.get((agent, column))
    return {} if tried is None else {"begun": tried.begun, "finished": tried.finished}


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
        "span_used": cell.spans.median if cell.spans is not None else None,
        **_evidence_row(cell.evidence),
    }


def _evidence_row(evidence: Distances) -> Row:
    ranges = (("evidence", evidence.tokens), ("of_span", evidence.shares))
    return {
        f"{name}{end}": value
        for name, found in ranges
        if found is not None
        for end, value in zip(("", "_low", "_high"), found, strict=True)
    }
