"""Tests in groups, side by side: mean scores by scenario, skill or distance, for people and for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from longspan.simulator.base.shares import format_percent, format_share_range
from longspan.simulator.base.tables import Table
from longspan.simulator.base.terminal import escape_invisible
from longspan.simulator.results.analysis.groups import Group, in_order, make_group
from longspan.simulator.results.graded_runs import Column
from longspan.simulator.results.measures.cells import RunTest, group_by
from longspan.simulator.results.measures.measure import SideBySide
from longspan.simulator.results.result import TestResult

__all__ = ["Row", "by_span", "group_by_agent", "group_rows", "one_line", "place_columns", "side_by_side"]

Row = dict[str, Any]


def group_by_agent(
    tests: Iterable[RunTest], agents: Sequence[str], belongs: Callable[[TestResult], Sequence[str]], column: Column | None = None
) -> dict[str, dict[str, Group]]:
    """Group the agents' tests by the names that `belongs` returns, in one column or in all."""
    chosen = [each for each in tests if column is None or each.run.column == column]
    by_name = group_by(chosen, lambda each: belongs(each.test))
    found = {}
    for name in in_order(by_name):
        by_agent = group_by(by_name[name], lambda each: [each.run.agent])
        found[name] = {agent: make_group([each.test for each in by_agent[agent]]) for agent in agents if agent in by_agent}
    return found


def one_line(text: str) -> str:
    """Return untrusted text in one line, with control characters replaced by their code points."""
    return escape_invisible(" ".join(text.split()))


def side_by_side(title: str, what: str, groups: Mapping[str, Mapping[str, Group]], side: SideBySide, counted: str = "tests") -> Table:
    """Return a table of groups by agents. `counted` names the unit of the groups' sizes, such as tests."""
    columns = [agent for agent in side.answering if any(agent in group for group in groups.values())]
    rows = {name: [by.get(agent) for agent in columns] for name, by in groups.items()}
    heads = [side.called.names[agent] for agent in columns]
    return _make_shaded(title, what, heads, {name: row for name, row in rows.items() if any(row)}, counted)


def by_span(title: str, what: str, side: SideBySide, groups: Mapping[Column, Mapping[str, Mapping[str, Group]]]) -> list[Table]:
    """Return a table of mean scores by span for each agent."""
    names = list(dict.fromkeys(name for column in reversed(side.columns) for name in groups[column]))
    found = []
    for agent in side.answering:
        columns = [column for column in side.columns if (agent, column) in side.cells]
        rows = {name: [groups[column].get(name, {}).get(agent) for column in columns] for name in sorted(names)}
        kept = {name: row for name, row in rows.items() if any(row)}
        found.append(_make_shaded(f"{title}, {side.called.names[agent]}", what, list(map(str, columns)), kept, "tests"))
    return found


def _make_shaded(title: str, what: str, columns: Sequence[str], groups: Mapping[str, Sequence[Group | None]], counted: str) -> Table:
    """Return a shaded table of mean scores. If all groups in a column have the same size, its heading gives the size once."""
    numbers = [{group.tests for group in column if group is not None} for column in zip(*groups.values(), strict=True)]
    same = [next(iter(found)) if len(found) == 1 else 0 for found in numbers]
    heads = [f"{one_line(name)}, {number:,} each" if number else one_line(name) for name, number in zip(columns, same, strict=False)]
    rows, shades = [], []
    for name, row in groups.items():
        chance = max(group.chance for group in row if group is not None)
        cells = [_mean(group, counted=not number) for group, number in zip(row, same, strict=True)]
        rows.append([one_line(name), *cells, format_percent(chance)])
        shades.append([None, *(group and group.low for group in row), None])
    brackets = "" if all(same) else f" ({counted})"
    return Table(title=f"{title}: mean score{brackets}", columns=[what, *heads, "chance"], rows=rows, shades=shades)


def _mean(group: Group | None, *, counted: bool) -> str:
    return "" if group is None else f"{format_share_range(group.low, group.high)}{f' ({group.tests})' if counted else ''}"


def group_rows(column: Column | None, groups: Mapping[str, Mapping[str, Group]]) -> Iterable[Row]:
    """Yield a row for each group and agent, for programs."""
    for name, by_agent in groups.items():
        for agent, found in by_agent.items():
            figures = {"low": found.low, "high": found.high, "std": found.std, "chance": found.chance, "tests": found.tests}
            score = found.low if found.std is not None else None
            yield place_columns(column, name=name, agent=agent) | {"score": score, "maximum": 1} | figures


def place_columns(column: Column | None, **names: str) -> Row:
    """Return the columns that identify a row. Figures over all spans have no `column`."""
    where = {} if column is None else {"isolated": column.isolated, "span": column.span}
    return where | names
