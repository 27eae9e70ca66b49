"""Mean scores by skill."""

from __future__ import annotations

from typing import final

from longspan.simulator.base.document import Data, Document
from longspan.simulator.results.analysis.groups import by_skill
from longspan.simulator.results.measures.cells import counted_tests
from longspan.simulator.results.measures.group_tables import by_span, group_by_agent, group_rows, side_by_side
from longspan.simulator.results.measures.measure import Measure, SideBySide

__all__ = ["Skills"]


@final
class Skills(Measure):
    """Mean scores by skill. A test counts for each skill of its scenario."""

    name = "skills"

    @classmethod
    def describe_comparison(cls, side: SideBySide) -> Document:
        tests = counted_tests(side.runs)
        groups = {column: group_by_agent(tests, side.agents, by_skill, column) for column in side.columns}
        if len(side.columns) == 1:
            (column,) = side.columns
            tables = [side_by_side(f"Skills{column.at}", "skill", groups[column], side)]
        else:
            tables = by_span("Skills", "skill", side, groups)
        return Document(
            tables=tables, data=[Data("skills", {}, [row for column in side.columns for row in group_rows(column, groups[column])])]
        )
