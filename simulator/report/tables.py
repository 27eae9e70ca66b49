"""A comparison as tables for people, at the terminal and in Markdown, and as one CSV file for programs."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any, Final, get_args

from longspan.simulator.analysis.comparing import Cell, Comparison, Pair
from longspan.simulator.analysis.distance_curve import DistanceCurve, Estimate
from longspan.simulator.analysis.distances import Distances, short
from longspan.simulator.analysis.graded_runs import Column
from longspan.simulator.analysis.groups import Group
from longspan.simulator.analysis.spreadsheet import write_csv
from longspan.simulator.analysis.statistics import ADVISED, ALPHA, least_conversations
from longspan.simulator.base.tables import Table, small
from longspan.simulator.base.terminal import visible
from longspan.simulator.grading.evidence_recall import recalls
from longspan.simulator.grading.grades import Status
from longspan.simulator.report.memory import OUTCOMES

__all__ = ["CSV_COLUMNS", "as_csv", "as_markdown", "as_rows", "more_tables", "notes", "one_line", "scenario_tables", "tables"]

CSV_COLUMNS: Final = (
    *("table", "isolated", "span", "name", "agent", "other"),
    *("score", "low", "high", "std", "interval_low", "interval_high", "interval_by", "maximum", "share", "chance"),
    *("runs", "tests", *get_args(Status), "certified", "at_distance", "cost_usd"),
    *("evidence", "evidence_low", "evidence_high", "of_span", "of_span_low", "of_span_high", "span_used", "distance"),
    *("difference", "conversations", "p", "p_holm", "p_of_tests", "more_conversations"),
    *OUTCOMES,
)
"""The columns of the CSV, which holds all tables one after another; docs/comparing.md describes them."""

Row = dict[str, Any]


P_NOTE: Final = "p is over whole conversations."

PAIRS_NOTE: Final = (
    f"{P_NOTE} Significant: p below 0.05 after Holm's correction. More conversations needed: for a significant difference in four of five "
    "cases, if the true one is the observed one."
)

TESTS_NOTE: Final = "The p of these tests takes them one by one: it is about these tests, not about other conversations, and not corrected."


EVIDENCE_NOTE: Final = (
    "Evidence distance: tokens from a question to the furthest needle that it needs, with this agent's replies; of span: the same as "
    "every agent was dealt it. Medians, with ranges in brackets. Span with replies: the median of the tests."
)


CURVE_NOTE: Final = (
    "The expected score of a question at the nearest and at the furthest distance seen, in tokens, from a curve through all graded "
    "questions; how far it falls between; and where it falls to one half, which may be nearer or further than any distance seen."
)


ADDING: Final = "add_calls_per_1k"

STAGES: Final = {
    "evidence_stored": "evidence stored",
    "add_seconds_per_1k": "adding: seconds",
    "add_calls_per_1k": "calls",
    "add_tokens_per_1k": "tokens",
    "add_usd_per_1k": "dollars",
    "add_growth": "last quarter to first",
    "settle_seconds": "settling: seconds",
    "search_seconds": "a search: seconds",
    "beyond_k": "memories beyond k",
}
"""The figures of a memory, and their columns. After the first come the shares of evidence among the first memories."""

STAGES_NOTE: Final = (
    "Means over questions of the share of their evidence that was stored, and that was among the first memories found, at "
    "most as many as were asked for. Adding: for each 1,000 tokens of conversation; its last quarter to its first: how many times as long "
    "a token took."
)

LOST_NOTE: Final = "As the agents' traces tell. A needle counts once for each question that needs it."


def one_line(text: str) -> str:
    """An untrusted text in one line, with control characters replaced by their code points."""
    return visible(" ".join(text.split()))


def tables(comparison: Comparison) -> list[Table]:
    """The tables for people, the most important first."""
    scores = [_shares(comparison), _scores(comparison)] if comparison.mixed else [_scores(comparison)]
    return [table for table in [*scores, *_lost(comparison), *scenario_tables(comparison), *more_tables(comparison)] if table.rows]


def scenario_tables(comparison: Comparison) -> list[Table]:
    """The mean scores by scenario, shaded: of all agents at the only span, or a table of scenarios by spans for each agent."""
    if len(comparison.columns) == 1:
        (column,) = comparison.columns
        scenarios = _groups(f"Scenarios{column.at}", "scenario", comparison.scenarios[column], comparison.agents)
        return [_with_evidence(scenarios, comparison.evidence[column])]
    return [*_by_span("Scenarios", "scenario", comparison, comparison.scenarios), _evidence(comparison)]


def more_tables(comparison: Comparison, *, stated: bool = False) -> list[Table]:
    """The tables of skills, of what is behind the scores, of pairs and distances, and the scenarios' own.

    Where contrasts were `stated`, it is not said how many more conversations would show a difference of a pair.
    """
    if len(comparison.columns) == 1:
        (column,) = comparison.columns
        skills = [_groups(f"Skills{column.at}", "skill", comparison.skills[column], comparison.agents)]
    else:
        skills = _by_span("Skills", "skill", comparison, comparison.skills)
    distances = _groups("Evidence distance, over all spans", "distance", comparison.distances, comparison.agents, "graded questions")
    effects = _effects(comparison)
    found = [_pairs(comparison, stated=stated), _tests(comparison), *effects, *skills, _curves(comparison), distances, *comparison.own]
    return [table for table in found if table.rows]


def notes(comparison: Comparison, *, stated: bool = False) -> list[str]:
    """Notes on the tables: what differs between the runs, what was left out, how intervals are made.

    Where contrasts were `stated`, no more seeds are asked for: these are what was to be tested.
    """
    lines = [f"{warning[0].upper()}{warning[1:]}" for warning in comparison.warnings]
    lines += [f"Left out: {run.why}" for run in comparison.unusable]
    lines += [f"Data: {'; '.join(comparison.data)}"] if comparison.data else []
    lines += [comparison.narrow] if comparison.narrow else []
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
    if stated and comparison.pairs:
        for_all = f", corrected for all {len(comparison.pairs)} pairs" if len(comparison.pairs) > 1 else ""
        lines.append(f"Pairs: their tests are two-sided{for_all}, and may differ from the contrasts, which are what was to be tested")
    elif few := {pair.conversations for pair in comparison.pairs if pair.conversations < least}:
        have = f"{min(few)} to {max(few)}" if len(few) > 1 else str(*few)
        among = f" of one of {len(comparison.pairs)} pairs" if len(comparison.pairs) > 1 else ""
        lacking = least - min(few)
        if any(pair.recorded for pair in comparison.pairs):
            more = f"take data with {lacking} more histor{'ies' if lacking > 1 else 'y'}"
        else:
            more = f"play {lacking} more seed{'s' * (lacking > 1)}"
        advice = f"; {ADVISED} are recommended" if least < ADVISED else ""
        common = f"{have} conversation{'s' * (max(few) > 1)} in common"
        lines.append(f"Pairs: {common} cannot show a difference{among}, however large; {least} can: {more}{advice}")
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
    title = f"{_measured(comparison)} ± the sum of the scenarios' standard deviations [95% interval]"
    return Table(title=title, columns=columns, rows=[*rows, chance])


def _measured(comparison: Comparison) -> str:
    return "Scores" if comparison.measured == "score" else f"Scores, {one_line(comparison.measured)},"


def _effects(comparison: Comparison) -> list[Table]:
    """What experiments show: a table for each kind, with a row for each agent and span."""
    return [
        Table(
            title=f"The same tests {name}",
            columns=["agent", "at", "tests", "conversations", "score", "left", "difference [95% interval]", "share"],
            rows=[
                [
                    one_line(each.agent),
                    str(each.column),
                    str(each.tests),
                    str(each.conversations),
                    f"{each.score:.2f}",
                    f"{each.without:.2f}",
                    f"{each.difference:.2f} [{', '.join(each.interval.ends())}]",
                    "" if each.share is None else f"{each.share:.0%}",
                ]
                for each in comparison.effects
                if each.name == name
            ],
            note="Left is what they score so; the difference is that from their score in the run, of which it is the share. "
            "Where the interval includes 0, nothing is shown, and there is no share.",
        )
        for name in dict.fromkeys(each.name for each in comparison.effects)
    ]


def _score(cell: Cell | None) -> str:
    if cell is None:
        return ""
    between = f" [{', '.join(cell.interval.ends())}]" if cell.interval is not None else ""
    return f"{_span(*cell.bounds)}{f' ± {cell.spread:.2f}' if cell.spread is not None else ''}{between}"


def _shares(comparison: Comparison) -> Table:
    """The scores as shares of full marks. Without rows if all have the same maximum."""
    columns = ["agent", *map(str, comparison.columns)]
    rows = [[one_line(agent), *(_share(comparison.cells.get((agent, c))) for c in comparison.columns)] for agent in comparison.agents]
    return Table(
        title=f"{_measured(comparison)} as shares of full marks [95% interval]", columns=columns, rows=rows if comparison.mixed else []
    )


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
            cell.evidence.in_tokens,
            cell.evidence.of_span,
            "–" if cell.spans is None else short(cell.spans.median),
            *(["–" if cell.cost_usd is None else f"{cell.cost_usd:.4f}"] if comparison.priced else []),
        ]
        for agent in comparison.agents
        for column in comparison.columns
        if (cell := comparison.cells.get((agent, column))) is not None
    ]
    names = [status.replace("_", " ") for status in statuses]
    cost = ["cost per run, $"] if comparison.priced else []
    columns = ["agent", "span", "runs", "tests", *names, "evidence distance", "of span", "span with replies", *cost]
    return Table(title="Tests behind the scores", columns=columns, rows=rows, note=EVIDENCE_NOTE)


def _pairs(comparison: Comparison, *, stated: bool) -> Table:
    few = any(pair.p_of_tests is not None for pair in comparison.pairs)
    several = len(comparison.columns) > 1
    rows = [
        [
            *([str(pair.column)] if several else []),
            one_line(pair.better),
            one_line(pair.other),
            f"{pair.difference:.2f}",
            str(pair.conversations),
            f"{pair.tests}{f' ({pair.unscored} without a score)' if pair.unscored else ''}",
            _p(pair.p),
            _p(pair.corrected),
            *([_p(pair.p_of_tests)] if few else []),
            *([] if stated else [_more(pair)]),
        ]
        for pair in comparison.pairs
    ]
    span, tests = ["span"] if several else [], ["p of these tests"] if few else []
    more = [] if stated else ["more conversations needed"]
    columns = [*span, "higher", "lower", "difference", "conversations", "same tests", "p", "p (Holm)", *tests, *more]
    correction = f", Holm-corrected for all {len(rows)} pairs" if len(rows) > 1 else ""
    title = f"Pairs{'' if several else comparison.columns[0].at}: paired permutation tests of conversations{correction}"
    note = P_NOTE if stated else PAIRS_NOTE
    return Table(title=title, columns=columns, rows=rows, note=f"{note} {TESTS_NOTE}" if few else note)


def _more(pair: Pair) -> str:
    if pair.corrected < ALPHA:
        return "significant"
    return "equal scores" if pair.more is None else f"{max(1, pair.more):,}"


def _with_evidence(table: Table, evidence: Mapping[str, Distances]) -> Table:
    """A table of scenarios with their evidence distances."""
    rows = [[*row, found.in_tokens, found.of_span] for row, found in zip(table.rows, evidence.values(), strict=True)]
    shades = [[*row, None, None] for row in table.shades or []]
    return Table(title=table.title, columns=[*table.columns, "evidence distance", "of span"], rows=rows, shades=shades)


def _evidence(comparison: Comparison) -> Table:
    """The evidence distances of each scenario's questions, by span."""
    names = sorted({name for found in comparison.evidence.values() for name in found})
    cells = [[found[name].in_tokens if name in found else "" for found in comparison.evidence.values()] for name in names]
    rows = [[one_line(name), *row] for name, row in zip(names, cells, strict=True)]
    return Table(title="Evidence distance by scenario and span", columns=["scenario", *map(str, comparison.evidence)], rows=rows)


def _curves(comparison: Comparison) -> Table:
    """Each agent's score by evidence distance: at the ends of what was seen, and where it falls to one half."""
    rows = [
        [
            one_line(agent),
            f"{curve.questions:,}",
            *(
                f"{_estimate(score)} at {short(at)}"
                for score, at in ((curve.scores[0], curve.distances[0]), (curve.scores[-1], curve.distances[-1]))
            ),
            _estimate(curve.fall),
            _half(curve),
        ]
        for agent, curve in comparison.curves.items()
    ]
    columns = ["agent", "questions", "nearest", "furthest", "fall", "one half at"]
    return Table(title="Score by evidence distance, over all spans [95% interval]", columns=columns, rows=rows, note=CURVE_NOTE)


def _half(curve: DistanceCurve) -> str:
    value, low, high = curve.half
    if value in (0, inf):
        return "further" if value else "nearer"
    return f"{short(value)} [{short(low) if low else 'nearer'}, {short(high) if high < inf else 'further'}]"


def _estimate(estimate: Estimate) -> str:
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def _groups(title: str, what: str, groups: Mapping[str, Mapping[str, Group]], agents: Sequence[str], counted: str = "tests") -> Table:
    columns = [agent for agent in agents if any(agent in group for group in groups.values())]
    return _shaded(title, what, columns, {name: [by.get(agent) for agent in columns] for name, by in groups.items()}, counted)


def _by_span(title: str, what: str, comparison: Comparison, groups: Mapping[Column, Mapping[str, Mapping[str, Group]]]) -> list[Table]:
    """A table of mean scores for each agent, by span."""
    names = list(dict.fromkeys(name for column in reversed(comparison.columns) for name in groups[column]))
    found = []
    for agent in comparison.agents:
        columns = [column for column in comparison.columns if (agent, column) in comparison.cells]
        rows = {name: [groups[column].get(name, {}).get(agent) for column in columns] for name in sorted(names)}
        kept = {name: row for name, row in rows.items() if any(row)}
        found.append(_shaded(f"{title}, {one_line(agent)}", what, list(map(str, columns)), kept, "tests"))
    return found


def _shaded(title: str, what: str, columns: Sequence[str], groups: Mapping[str, Sequence[Group | None]], counted: str) -> Table:
    """Mean scores, shaded. How many they are of is in a column's heading if it is the same everywhere in it."""
    numbers = [{group.tests for group in column if group is not None} for column in zip(*groups.values(), strict=True)]
    same = [next(iter(found)) if len(found) == 1 else 0 for found in numbers]
    heads = [f"{one_line(name)}, {number:,} each" if number else one_line(name) for name, number in zip(columns, same, strict=False)]
    rows, shades = [], []
    for name, row in groups.items():
        chance = max(group.chance for group in row if group is not None)
        cells = [_mean(group, counted=not number) for group, number in zip(row, same, strict=True)]
        rows.append([one_line(name), *cells, f"{chance:.2f}"])
        shades.append([None, *(group and group.low for group in row), None])
    brackets = "" if all(same) else f" ({counted})"
    return Table(title=f"{title}: mean score{brackets}", columns=[what, *heads, "chance"], rows=rows, shades=shades)


def _mean(group: Group | None, *, counted: bool) -> str:
    return "" if group is None else f"{_span(group.low, group.high)}{f' ({group.tests})' if counted else ''}"


def _lost(comparison: Comparison) -> list[Table]:
    """Where each agent's memory was lost. Of agents that tell nothing of it: how their questions were answered."""
    cells = [
        (one_line(agent), str(column), comparison.cells[agent, column].lost)
        for column in comparison.columns
        for agent in comparison.agents
        if (agent, column) in comparison.cells
    ]
    told = [(agent, span, lost.needles._asdict()) for agent, span, lost in cells if lost.tells != "nothing"]
    untold = [(agent, span, lost.answers._asdict()) for agent, span, lost in cells if lost.tells == "nothing" and lost.answers.asked]
    return [
        _outcomes("Where the memory was lost: needles that questions needed", "needed", told, LOST_NOTE),
        _outcomes("Answers of agents that tell nothing of their memory", "graded questions", untold),
        _stages(comparison),
    ]


def _stages(comparison: Comparison) -> Table:
    """The memories by stage: what was stored, what was found, and what adding took. Empty unless an agent tells of the last."""
    cells = [
        (one_line(agent), str(column), comparison.cells[agent, column])
        for column in comparison.columns
        for agent in comparison.agents
        if (agent, column) in comparison.cells
    ]
    told = [(agent, span, cell) for agent, span, cell in cells if ADDING in cell.memory]
    first, *others = STAGES
    places = sorted({k for _, _, cell in told for k in recalls(cell.memory)})
    heads = {f"evidence_recall@{k}": f"{k:,}" if number else f"among the first {k:,}" for number, k in enumerate(places)}
    columns = {first: STAGES[first], **heads, **{name: STAGES[name] for name in others}}
    seen = [name for name in columns if any(name in cell.memory for _, _, cell in told)]
    rows = [
        [
            agent,
            span,
            *("" if name not in cell.memory else small(cell.memory[name]) for name in seen),
            "" if cell.score is None else f"{cell.share[0]:.2f}",
        ]
        for agent, span, cell in told
    ]
    named = [columns[name] for name in seen]
    return Table(title="Memories by stage", columns=["agent", "span", *named, "score, of 1"], rows=rows, note=STAGES_NOTE)


def _outcomes(title: str, whole: str, found: Sequence[tuple[str, str, Mapping[str, int]]], note: str = "") -> Table:
    seen = [outcome for outcome in OUTCOMES if any(counts.get(outcome) for _, _, counts in found)]
    rows = [[agent, span, f"{sum(counts.values()):,}", *(f"{counts[outcome]:,}" for outcome in seen)] for agent, span, counts in found]
    return Table(title=title, columns=["agent", "span", whole, *(OUTCOMES[outcome] for outcome in seen)], rows=rows, note=note)


def _span(low: float, high: float) -> str:
    return f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f}–{high:.2f}"


def _p(value: float | None) -> str:
    if value is None:
        return ""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


# ---- Markdown


def as_markdown(comparison: Comparison) -> str:
    """The tables and notes in Markdown. Untrusted text is escaped: it is shown as it is, and is no HTML, no link and no mention."""
    parts = [f"# {_escaped(comparison.suite)}: {len(comparison.agents)} agents, {comparison.runs} runs"]
    for table in tables(comparison):
        rules = ["---:" if right else "---" for right in table.numeric]
        lines = [f"| {' | '.join(map(_escaped, row))} |" for row in (table.columns, *table.rows)]
        parts.append("\n".join([f"## {_escaped(table.title)}", "", lines[0], f"| {' | '.join(rules)} |", *lines[1:]]))
    if lines := notes(comparison):
        parts.append("\n".join(["## Notes", "", *(f"- {_escaped(note)}" for note in lines)]))
    return "\n\n".join(parts) + "\n"


_MARKED: Final = re.compile(
    r"[\\`*\[\]<>|~&#@$]"
    r"|(?<![^\W_])_|_(?![^\W_])"  # one inside a word means nothing
    r"|:(?=//)|(?<=www)\.|^[-+=](?=\s|[-+=]|$)",
    re.IGNORECASE,
)
"""Characters that mean something in Markdown, GitHub's too, where they stand."""

_NUMBERED: Final = re.compile(r"^(\d{1,9})([.)])(?=\s|$)")
"""What begins an item of a numbered list."""


def _escaped(text: str) -> str:
    return _NUMBERED.sub(r"\1\\\2", _MARKED.sub(r"\\\g<0>", one_line(text)))


# ---- CSV


def as_csv(comparison: Comparison) -> str:
    """All figures in one CSV file. A cell that does not apply is empty."""
    file = io.StringIO()
    write_csv(file, CSV_COLUMNS, _rows(comparison))
    return file.getvalue()


def as_rows(comparison: Comparison) -> list[Row]:
    """The same figures as dicts, with those columns that apply."""
    return [{name: value for name, value in row.items() if value is not None} for row in _rows(comparison)]


def _rows(comparison: Comparison) -> Iterable[Row]:
    for agent in comparison.agents:
        for column in comparison.columns:
            if (cell := comparison.cells.get((agent, column))) is not None:
                yield _place("scores", column, agent=agent) | _cell_row(cell)
    for (agent, column), cell in sorted(comparison.cells.items()):
        tells, needles, answers = cell.lost
        yield _place("memory", column, agent=agent) | (needles._asdict() if tells != "nothing" else {}) | answers._asdict()
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
        for row in _group_rows("scenarios", column, comparison.scenarios[column]):
            yield row | _evidence_row(comparison.evidence[column][row["name"]])
        yield from _group_rows("skills", column, comparison.skills[column])
    yield from _group_rows("distances", None, comparison.distances)
    for agent, curve in comparison.curves.items():
        by = {"interval_by": curve.by, "tests": curve.tests}
        for distance, score in zip(curve.distances, curve.scores, strict=True):
            ends = {"interval_low": score.low, "interval_high": score.high}
            yield _place("curve", None, name="score", agent=agent) | by | {"distance": distance, "score": score.value} | ends
        half, low, high = (value if 0 < value < inf else None for value in curve.half)
        yield _place("curve", None, name="half", agent=agent) | by | {"distance": half, "interval_low": low, "interval_high": high}


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


def _group_rows(table: str, column: Column | None, groups: Mapping[str, Mapping[str, Group]]) -> Iterable[Row]:
    for name, by_agent in groups.items():
        for agent, group in by_agent.items():
            figures = {"low": group.low, "high": group.high, "std": group.std, "chance": group.chance, "tests": group.tests}
            score = group.low if group.std is not None else None
            yield _place(table, column, name=name, agent=agent) | {"score": score, "maximum": 1} | figures


def _place(table: str, column: Column | None, **names: str) -> Row:
    where = {} if column is None else {"isolated": column.isolated, "span": column.span}
    return {"table": table} | where | names
