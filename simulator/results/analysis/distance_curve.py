"""Score by evidence distance: a logistic curve over all graded questions, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import NormalDist, fmean
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, final

from longspan.simulator.base.shares import format_interval, format_percent
from longspan.simulator.results.analysis.distances import Point
from longspan.simulator.results.analysis.statistics import student_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

__all__ = ["CurveEstimate", "DistanceCurve", "Scale", "distance_curve"]

Scale = Literal["linear", "logarithmic"]

MIN_TESTS: Final = 6
MIN_DISTANCES: Final = 3
"""The fewest tests, and the fewest different distances, that a curve is fitted to."""

MAX_BINS: Final = 64
"""The maximum number of separate distances. More are merged into bins with equal numbers of tests."""

RESAMPLES: Final = 500
"""The number of bootstrap samples."""

STEPS: Final = 60
"""The maximum steps of Newton's method; about ten suffice."""

PLACES: Final = 41
"""The number of distances where the curve is evaluated."""

HALF: Final = 0.5
"""The score whose distance is estimated."""

ADDED: Final = 1.0
"""The number of added observations of one half, spread over all questions."""


@final
class CurveEstimate(NamedTuple):
    """A value and its 95% interval. If nothing could be resampled, both ends of the interval equal the value."""

    value: float
    low: float
    high: float


@final
@dataclass(frozen=True, slots=True)
class DistanceCurve:
    """The expected score at each of `distances`, in tokens from the nearest seen to the furthest, with pointwise 95% intervals.

    `half`: the distance where the falling curve crosses one half. It is 0 if the curve is below at all distances seen, infinite if it is
    above at all. `fall`: the score at the nearest distance minus the score at the furthest. `by`: the units that were resampled, or None if
    there is no interval. `chance`: the mean score of guessing.
    """

    scale: Scale
    distances: tuple[float, ...]
    scores: tuple[CurveEstimate, ...]
    half: CurveEstimate
    fall: CurveEstimate
    by: Literal["conversations", "tests"] | None
    questions: int
    tests: int
    chance: float

    @property
    def sentence(self) -> str:
        """The curve in words, with 95% intervals in brackets."""
        ends = (
            f"{format_percent(score.value)}{_between(score)} at {self.distances[at]:,.0f}"
            for at, score in ((0, self.scores[0]), (-1, self.scores[-1]))
        )
        fall = f"a fall of {format_percent(self.fall.value)}{_between(self.fall)}" if self.fall.value >= 0.005 else "no fall"
        return f"{' and '.join(ends)} tokens, {fall}; {self.half_text}"

    @property
    def half_text(self) -> str:
        """The distance where the curve falls to one half, in words."""
        if self.half.value in (0, inf):
            return f"{'above' if self.half.value else 'below'} one half at all distances seen"
        low = f"{self.half.low:,.0f}" if self.half.low else f"less than {self.distances[0]:,.0f}"
        high = f"{self.half.high:,.0f}" if self.half.high < inf else f"more than {self.distances[-1]:,.0f}"
        return f"one half at {self.half.value:,.0f} tokens{f' [{low}, {high}]' if self.by else ''}"


def _between(estimate: CurveEstimate) -> str:
    return format_interval(estimate[1:]) if estimate.low < estimate.high else ""


def distance_curve(points: Sequence[Point], *, seed: int = 0) -> DistanceCurve | None:
    """Fit a curve to graded questions. Undecided questions are left out. Return None with too few tests or too few different distances.

    Scores in [0, 1] are fitted by fractional logistic regression (Papke and Wooldridge, 1996), in distance or in its logarithm, whichever
    is likelier. Each test counts as one, however many questions it has. One observation of one half is added, spread over all questions, so
    that the curve stays finite where distance separates the scores completely.

    The intervals are bootstrapped, and the scale is chosen anew for each sample. Whole conversations are resampled if there are several,
    but the intervals are never narrower than if tests were. Each sample draws n - 1 of n units, and percentiles are widened as by Student's
    t, as in `interval`. The interval of `half` ends at distances that were seen, since nothing is known between them.
    """
    import numpy as np

    decided = sorted(
        (point for point in points if point.score is not None), key=lambda point: (point.conversation, point.test, point.distance)
    )
    tests = _numbers([f"{point.conversation}\0{point.test}" for point in decided])
    conversations = _numbers([point.conversation for point in decided])
    distance = np.array([float(point.distance) for point in decided])
    if not decided or tests[-1] + 1 < MIN_TESTS or len(set(distance.tolist())) < MIN_DISTANCES:
        return None
    weight = 1 / np.bincount(tests)[tests]
    score = weight * np.array([point.lowest for point in decided])
    places, bins = _bin_distances(distance, weight)
    grid = np.linspace(distance.min(), distance.max(), PLACES)

    def units(of: Array) -> tuple[Array, Array]:
        """Return the sums of weights and of weighted scores of each unit (rows) in each bin (columns)."""
        sums = np.zeros((2, of[-1] + 1, len(places)))
        np.add.at(sums[0], (of, bins), weight)
        np.add.at(sums[1], (of, bins), score)
        return sums[0], sums[1]

    weights, scores = (sums.sum(axis=0, keepdims=True) for sums in units(tests))
    whole = _curves(places, weights, scores, grid)
    drawn = [_bootstrap_intervals(places, *units(of), grid, seed) for of in _resamplings(tests, conversations)]
    found = [
        CurveEstimate(value, min([value, *(low[at] for low, _ in drawn)]), max([value, *(high[at] for _, high in drawn)]))
        for at, value in enumerate(whole.figures[0].tolist())
    ]
    return DistanceCurve(
        scale="logarithmic" if whole.logarithmic[0] else "linear",
        distances=tuple(grid.tolist()),
        scores=tuple(found[:PLACES]),
        half=_outward(found[PLACES], places),
        fall=found[PLACES + 1],
        by=None if not drawn else "conversations" if len(drawn) > 1 else "tests",
        questions=len(decided),
        tests=int(tests[-1]) + 1,
        chance=fmean(point.chance for point in decided),
    )


def _outward(half: CurveEstimate, places: Array) -> CurveEstimate:
    """Move the ends of an interval outward to the next distances that were seen."""
    import numpy as np

    low = half.low
    if 0 < low < inf:
        low = float(places[max(0, int(np.searchsorted(places, low, "right")) - 1)])
    high = half.high
    if 0 < high < inf:
        high = float(places[min(len(places) - 1, int(np.searchsorted(places, high)))])
    return CurveEstimate(half.value, low, high)


def _numbers(names: Sequence[str]) -> Array:
    """Number the groups of equal names. Equal names must follow each other."""
    import numpy as np

    new = [number > 0 and name != names[number - 1] for number, name in enumerate(names)]
    return np.cumsum(new, dtype=int)


def _resamplings(tests: Array, conversations: Array) -> list[Array]:
    """Return the units to resample: tests, and also conversations if several of them have several tests."""
    several = 0 < conversations[-1] < tests[-1]
    return [tests, conversations] if several else [tests]


def _bin_distances(distance: Array, weight: Array) -> tuple[Array, Array]:
    """Return the mean distance of each bin, and the bin of each distance. Up to `MAX_BINS` distances have a bin each."""
    import numpy as np

    _, bins = np.unique(distance, return_inverse=True)
    if bins.max() >= MAX_BINS:
        _, bins = np.unique(np.floor(MAX_BINS * (np.argsort(np.argsort(distance, kind="stable")) / len(distance))), return_inverse=True)
    return np.bincount(bins, weight * distance) / np.bincount(bins, weight), bins


class _Curves(NamedTuple):
    """A row of `figures` for each sample: the scores on the grid, the distance of one half, and the fall."""

    figures: Array
    logarithmic: Array


def _bootstrap_intervals(places: Array, weight: Array, score: Array, grid: Array, seed: int) -> tuple[list[float], list[float]]:
    """Return the lower and upper ends of the intervals of all figures."""
    import numpy as np

    units = len(weight)
    drawn = np.random.default_rng(seed).multinomial(units - 1, [1 / units] * units, size=RESAMPLES).astype(float)
    figures = np.sort(_curves(places, drawn @ weight, drawn @ score, grid).figures, axis=0)
    tail = NormalDist().cdf(-student_quantile(units - 1))
    at = round(tail * (RESAMPLES - 1))  # not interpolated, because half distances may be infinite
    return figures[at].tolist(), figures[-1 - at].tolist()


def _curves(places: Array, weight: Array, score: Array, grid: Array) -> _Curves:
    """Fit a curve to each sample. A sample is a row of sums of weights and of weighted scores in the bins. The likelier of the two scales
    is taken."""
    import numpy as np

    linear, logarithmic = (_figures(places, weight, score, grid, log) for log in (False, True))
    likelier = logarithmic[1] > linear[1] + 1e-9
    return _Curves(np.where(likelier[:, None], logarithmic[0], linear[0]), likelier)


def _figures(places: Array, weight: Array, score: Array, grid: Array, log: bool) -> tuple[Array, Array]:
    """Return the figures and the likelihood of each sample's fit on one scale."""
    import numpy as np

    scaled, ends = (np.log1p(places), np.log1p(grid)) if log else (places, grid)
    middle, spread = scaled.mean(), scaled.std()
    level, slope, likelihood = _fit((scaled - middle) / spread, weight, score)
    curve = _logistic(level[:, None] + slope[:, None] * (ends - middle) / spread)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        half = middle - spread * level / slope
        half = np.expm1(half) if log else half
    half = np.where(curve[:, 0] < HALF, 0.0, np.where(curve[:, -1] >= HALF, inf, half))
    return np.column_stack([curve, half, curve[:, 0] - curve[:, -1]]), likelihood


def _fit(x: Array, weight: Array, score: Array) -> tuple[Array, Array, Array]:
    """Maximise each sample's fractional likelihood. Return levels, slopes and likelihoods."""
    import numpy as np

    total = weight.sum(axis=1, keepdims=True)
    weight, score = weight / total, (score + ADDED * weight / total / 2) / (total + ADDED)
    mean = score.mean(axis=0, keepdims=True)
    level, slope, _ = _climb(x, weight.mean(axis=0, keepdims=True), mean, np.log(mean.sum(axis=1) / (1 - mean.sum(axis=1))), np.zeros(1))
    return _climb(x, weight, score, np.repeat(level, len(weight)), np.repeat(slope, len(weight)))


def _climb(x: Array, weight: Array, score: Array, level: Array, slope: Array) -> tuple[Array, Array, Array]:
    """Maximise likelihoods by Newton's method from given starting values.

    Importing scipy.optimize would take longer than all samples together take here.
    """
    import numpy as np

    def likelihood(level: Array, slope: Array) -> Array:
        z = level[:, None] + slope[:, None] * x
        found: Array = (score * z - weight * np.logaddexp(0, z)).sum(axis=1)
        return found

    reached = likelihood(level, slope)
    for _ in range(STEPS):
        p = _logistic(level[:, None] + slope[:, None] * x)
        rest, bend = score - weight * p, weight * p * (1 - p)
        up, tilt = rest.sum(axis=1), rest @ x
        a, b, c = bend.sum(axis=1), bend @ x, bend @ (x * x)
        determinant = a * c - b * b + 1e-12
        by_level, by_slope = (c * up - b * tilt) / determinant, (a * tilt - b * up) / determinant
        for _ in range(20):  # the likelihood is concave, so a step that is too long is halved
            now = likelihood(level + by_level, slope + by_slope)
            if not (far := now < reached - 1e-12).any():
                break
            by_level[far], by_slope[far] = by_level[far] / 2, by_slope[far] / 2
        level, slope, gain, reached = level + by_level, slope + by_slope, (now - reached).max(), now
        if gain < 1e-8:
            break
    return level, slope, reached


def _logistic(z: Array) -> Array:
    import numpy as np

    p: Array = np.exp(-np.logaddexp(0, -z))
    return p
