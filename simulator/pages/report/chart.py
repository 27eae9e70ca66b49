"""The figure of a report: a run's scores by evidence distance, with the curve through them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import Final, NamedTuple, final
from zlib import crc32

from longspan.simulator.pages.report.timeline import Tick, round_ticks
from longspan.simulator.results.analysis.distance_curve import CurveEstimate, DistanceCurve, distance_curve
from longspan.simulator.results.analysis.distances import Point

__all__ = ["Chart", "Dot", "make_chart"]

SPREAD: Final = 0.025
"""The maximum distance that a dot is moved, as a share of the figure's height."""


@final
class Dot(NamedTuple):
    """A graded question.

    `x` and `y` are shares of the figure's width and height, from the top left. Dots with equal scores would hide each other, so each is
    moved up or down a little, always by the same amount.
    """

    point: Point
    x: float
    y: float


@final
class Chart(NamedTuple):
    """A figure in shares of its width and height: its `dots`, and the `line` and the `band` as SVG points in percent.

    `half` is the place where the line falls to one half, with the part of its interval inside the figure; None if the line does not fall
    that far.
    """

    curve: DistanceCurve
    dots: list[Dot]
    ticks: list[Tick]
    line: str
    band: str
    half: CurveEstimate | None


def make_chart(points: Sequence[Point]) -> Chart | None:
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
        dots=[Dot(point, point.distance / width, _jitter(point, 1 - point.score)) for point in points if point.score is not None],
        ticks=round_ticks(int(width)),
        line=_path(zip(across, (score.value for score in curve.scores), strict=True)),
        band=_path(band),
        half=CurveEstimate(*(min(1.0, at / width) for at in curve.half)) if 0 < curve.half.value < inf else None,
    )


def _jitter(point: Point, y: float) -> float:
    # A checksum instead of a random number, so that the same run gives the same page.
    return y + SPREAD * (crc32(f"{point.test} {point.turn}".encode()) / 2**31 - 1)


def _path(places: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{100 * x:.2f},{100 * (1 - y):.2f}" for x, y in places)
