"""The figure of a report: a run's scores by evidence distance, with the curve through them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import Final, NamedTuple, final
from zlib import crc32

from longspan.simulator.analysis.distance_curve import DistanceCurve, Estimate, distance_curve
from longspan.simulator.analysis.distances import Point
from longspan.simulator.report.timeline import Tick, ticks

__all__ = ["Chart", "Dot", "chart"]

SPREAD: Final = 0.025
"""By how much a dot is moved at most, as a share of the figure's height."""


@final
class Dot(NamedTuple):
    """A graded question. `x` and `y` are shares of the figure's width and height, from its top left. Questions of one score are moved
    up and down a little, each always by the same amount, so that they do not hide each other."""

    point: Point
    x: float
    y: float


@final
class Chart(NamedTuple):
    """A figure, in shares of its width and height: its `dots`, and the `line` and the `band` as points of SVG in percent.

    `half` is the place where the line falls to one half, with as much of its interval as lies in the figure; None if the line does not fall
    that far.
    """

    curve: DistanceCurve
    dots: list[Dot]
    ticks: list[Tick]
    line: str
    band: str
    half: Estimate | None


def chart(points: Sequence[Point]) -> Chart | None:
    """Return the figure of graded questions; None if there are too few for a curve."""
    curve = distance_curve(points)
    if curve is None:
        return None
    width = 1.05 * curve.distances[-1]
    across = [distance / width for distance in curve.distances]
    band = [*zip(across, (score.high for score in curve.scores), strict=True)]
    band += reversed([*zip(across, (score.low for score in curve.scores), strict=True)])
    return Chart(
        curve=curve,
        dots=[Dot(point, point.distance / width, _moved(point, 1 - point.score)) for point in points if point.score is not None],
        ticks=ticks(int(width)),
        line=_path(zip(across, (score.value for score in curve.scores), strict=True)),
        band=_path(band),
        half=Estimate(*(min(1.0, at / width) for at in curve.half)) if 0 < curve.half.value < inf else None,
    )


def _moved(point: Point, y: float) -> float:
    return y + SPREAD * (crc32(f"{point.test} {point.turn}".encode()) / 2**31 - 1)


def _path(places: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{100 * x:.2f},{100 * (1 - y):.2f}" for x, y in places)
