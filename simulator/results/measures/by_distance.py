"""Scores by evidence distance: in groups, and as a curve for each agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Final, final

from longspan.simulator.base.document import Data, Document
from longspan.simulator.base.shares import format_interval, format_percent
from longspan.simulator.base.sizes import format_tokens
from longspan.simulator.base.tables import Table
from longspan.simulator.results.analysis.distance_curve import CurveEstimate, DistanceCurve
from longspan.simulator.results.analysis.distances import Point
from longspan.simulator.results.analysis.groups import Group, by_distance, group_tests, in_order
from longspan.simulator.results.measures.group_tables import Row, group_rows, place_columns, side_by_side
from longspan.simulator.results.measures.measure import Measure, SideBySide

__all__ = ["ByDistance"]

CURVE_NOTE: Final = (
    "The expected score of a question at the nearest and at the furthest distance seen, in tokens, from a curve through all graded "
    "questions; how far it falls between; and where it falls to one half, which may be nearer or further than any distance seen."
)


@final
class ByDistance(Measure):
    """The fall of scores with the distance of a question's needles, over all spans."""

    name = "distance"

    @classmethod
    def describe_comparison(cls, side: SideBySide) -> Document:
        groups = _by_distance(side.points)
        table = side_by_side("Evidence distance, over all spans", "distance", groups, side, "graded questions")
        data = [Data("distances", {}, list(group_rows(None, groups))), Data("curve", {}, list(_curve_rows(side.curves)))]
        return Document(tables=[_curves(side), table], data=data)


def _by_distance(asked: Mapping[str, Sequence[Point]]) -> dict[str, dict[str, Group]]:
    """Group each agent's graded questions by their evidence distance."""
    groups = {agent: group_tests(found, by_distance) for agent, found in asked.items()}
    names = in_order({name for by_name in groups.values() for name in by_name})
    return {name: {agent: by_name[name] for agent, by_name in groups.items() if name in by_name} for name in names}


def _curves(side: SideBySide) -> Table:
    """Return a table of each agent's curve: its scores at the nearest and the furthest distance, and where it falls to one half."""
    rows = [
        [
            side.called.names[agent],
            f"{curve.questions:,}",
            *(
                f"{_estimate(score)} at {format_tokens(at)}"
                for score, at in ((curve.scores[0], curve.distances[0]), (curve.scores[-1], curve.distances[-1]))
            ),
            _estimate(curve.fall),
            _half(curve),
        ]
        for agent, curve in side.curves.items()
    ]
    columns = ["agent", "questions", "nearest", "furthest", "fall", "one half at"]
    return Table(title="Score by evidence distance, over all spans [95% interval]", columns=columns, rows=rows, note=CURVE_NOTE)


def _half(curve: DistanceCurve) -> str:
    value, low, high = curve.half
    if value in (0, inf):  # the curve never crosses one half at the distances seen
        return "further" if value else "nearer"
    return f"{format_tokens(value)} [{format_tokens(low) if low else 'nearer'}, {format_tokens(high) if high < inf else 'further'}]"


def _estimate(estimate: CurveEstimate) -> str:
    return f"{format_percent(estimate.value)}{format_interval((estimate.low, estimate.high))}"


def _curve_rows(curves: Mapping[str, DistanceCurve]) -> Iterator[Row]:
    for agent, curve in curves.items():
        by = {"interval_by": curve.by, "tests": curve.tests}
        for distance, score in zip(curve.distances, curve.scores, strict=True):
            ends = {"interval_low": score.low, "interval_high": score.high}
            yield place_columns(None, name="score", agent=agent) | by | {"distance": distance, "score": score.value} | ends
        # Infinity is not JSON, and 0 is not a distance: both mean that the curve does not cross one half.
        half, low, high = (value if 0 < value < inf else None for value in curve.half)
        yield place_columns(None, name="half", agent=agent) | by | {"distance": half, "interval_low": low, "interval_high": high}
