"""The layout of a curve in its picture. Pages and files draw the same layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import log, log10
from typing import Final, NamedTuple, final

from longspan.simulator.base.document import Curve, CurvePoint
from longspan.simulator.base.shares import format_percent
from longspan.simulator.pages.report.timeline import Tick

__all__ = ["CurveLayout", "PlacedPoint", "lay_out", "lay_out_alike"]

START: Final = 0.05
"""The position of questions at no distance, as a share of the width."""

LEFT: Final = 0.14
"""The start of the axis of distances if there are such questions."""

APART: Final = 0.075
"""The least distance between two numbers of questions, as a share of the width. Closer numbers would overlap on a phone."""

ROOM: Final = 1.25
"""How far the axis extends beyond the points, as a factor of the distance."""

MANY: Final = 5
"""With more ticks than this, only powers of ten are kept."""


@final
class PlacedPoint(NamedTuple):
    """A point at a share of the width. `counted`: there is room for the number of its questions."""

    point: CurvePoint
    x: float
    counted: bool = True


@final
class CurveLayout(NamedTuple):
    """A curve in shares of the width and the height of its picture, from the bottom left.

    `axis` is where the axis of distances begins. `band` has the start, the value and the end of the curve's band.
    """

    curve: Curve
    axis: float
    start: PlacedPoint | None
    points: list[PlacedPoint]
    ticks: list[Tick]
    fitted: list[tuple[float, float]]
    band: tuple[float, float, float] | None

    @property
    def all_points(self) -> list[PlacedPoint]:
        return [*([self.start] if self.start is not None else []), *self.points]

    @property
    def before(self) -> bool:
        """Whether there is more room to the left of the band than to the right. The label then goes there, below the high level."""
        return self.band is not None and self.band[0] - self.axis > 1 - self.band[1]

    @property
    def text(self) -> str:
        """The points in words."""
        return "; ".join(
            f"{each.point.text} ({format_percent(each.point.low)} to {format_percent(each.point.high)})" for each in self.all_points
        )


def lay_out(curve: Curve, ends: tuple[float, float] | None = None) -> CurveLayout:
    """Return the layout of a curve. `ends` are the distances at both ends of the axis, by default slightly beyond the points."""
    low, high = ends or _find_ends([curve])
    axis = LEFT if curve.start is not None else 0.0

    def place(distance: float) -> float:
        share = (log(max(distance, 1e-9)) - log(low)) / (log(high) - log(low))
        return axis + (1 - axis) * min(1.0, max(0.0, share))

    band = None
    if curve.band is not None:
        first, value, last = curve.band.low, curve.band.value, high if curve.band.high is None else curve.band.high
        band = place(first), place(value), place(last)
    return CurveLayout(
        curve=curve,
        axis=axis,
        start=None if curve.start is None else PlacedPoint(curve.start, START),
        points=[*_place_points(curve.points, [place(point.distance) for point in curve.points])],
        ticks=[Tick(place(at), _name(at)) for at in _find_ticks(low, high)],
        fitted=[(place(distance), share) for distance, share in curve.fitted],
        band=band,
    )


def _place_points(points: Sequence[CurvePoint], places: Sequence[float]) -> Iterator[PlacedPoint]:
    last = -APART
    for point, x in zip(points, places, strict=True):
        counted = x - last >= APART
        last = x if counted else last
        yield PlacedPoint(point, x, counted)


def lay_out_alike(curves: Sequence[Curve]) -> list[CurveLayout]:
    """Return the layouts of curves on a common axis."""
    return [lay_out(curve, _find_ends(curves)) for curve in curves] if curves else []


def _find_ends(curves: Iterable[Curve]) -> tuple[float, float]:
    at = [point.distance for curve in curves for point in curve.points]
    return min(at) / ROOM, max(at) * ROOM


def _find_ticks(low: float, high: float) -> list[float]:
    powers = range(int(log10(low)) - 1, int(log10(high)) + 1)
    ticks = [step * 10.0**power for power in powers for step in (1, 3) if low <= step * 10.0**power <= high]
    return ticks if len(ticks) <= MANY else ticks[::2] if ticks[0] == 10 ** round(log10(ticks[0])) else ticks[1::2]


def _name(tokens: float) -> str:
    return f"{tokens / 1_000_000:g}M" if tokens >= 1_000_000 else f"{tokens / 1000:g}k" if tokens >= 1000 else f"{tokens:g}"
