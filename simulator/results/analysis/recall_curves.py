"""The likelihood of answers under simple curves of recall by distance: one level, a step between two levels, a gradual fall, three levels.

Levels are free: recall before and after a fall may be anything. All curves are weighed over grids, so that marginal likelihoods, which need
no penalty for parameters, are plain sums. The levels are the midpoints of equally probable slices of Jeffreys' prior for a share, Beta(1/2,
1/2). It slightly favours levels near 0 and 1, since most agents recall nearly everything nearby. Distances are compared by their logarithm,
`log1p`, since a distance may be 0.
"""

from __future__ import annotations

from functools import cache
from math import pi
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

__all__ = [
    "MARGIN",
    "SLOPE_LEVELS",
    "WIDTHS",
    "WINDOW_WIDTHS",
    "Answers",
    "Levels",
    "Slopes",
    "Steps",
    "add_logs",
    "group_answers",
    "weigh_pieces",
    "weigh_slopes",
    "weigh_steps",
]

LEVELS: Final = 48
"""The number of levels. With 48, neighbours are at most .033 apart, and .001 near 0 and 1."""

MARGIN: Final = 0.05
"""The least difference of two levels that counts as a fall or a rise."""

WINDOW_WIDTHS: Final = (0.06, 0.15)
"""Widths of a window's edge if it is not sharp, for example because whole messages are kept, or another tokenizer counts the tokens."""

WIDTHS: Final = (*WINDOW_WIDTHS, 0.3, 0.5, 0.8, 1.3)
"""Widths of gradual falls in the logarithm of distance. Exponential decay, with a fixed half-life in tokens, is at about .65."""

SLOPE_LEVELS: Final = 10
"""The number of levels before and after a gradual fall. It is lower because each pair of levels needs all questions again."""

DECIMALS: Final = 3
"""The decimals that distances are rounded to."""

PLACES: Final = 60
"""The number of places that a gradual fall may have."""

MAX_GROUPS: Final = 128
"""The maximum number of groups of questions for gradual falls. Only steps need each distance separately."""

MAX_PIECES_GROUPS: Final = 64
"""The same for curves of two or three levels in any order, whose number is the number of pairs of groups."""


@final
class Levels(NamedTuple):
    """The grid of levels with its logarithms. `falls[near, far]` says whether the levels differ by MARGIN or more."""

    values: Array
    log: Array
    log_rest: Array
    falls: Array


@cache
def _make_levels(number: int) -> Levels:
    import numpy as np

    values = np.sin(pi * (np.arange(number) + 0.5) / (2 * number)) ** 2
    return Levels(values, np.log(values), np.log1p(-values), values[:, None] - values[None, :] >= MARGIN)


def get_levels() -> Levels:
    """Return the grid of levels. It is made at first use, so that only fits import NumPy."""
    return _make_levels(LEVELS)


@final
class Answers(NamedTuple):
    """Answers by distance: the distinct distances, rising, and the sums of right and wrong answers at each. A partial score counts as a
    share of both."""

    at: Array
    right: Array
    wrong: Array

    @property
    def scale(self) -> Array:
        """The distances as they are compared."""
        import numpy as np

        return np.log1p(self.at)


def group_answers(distance: Array, score: Array) -> Answers:
    """Group answers by distance. Both arrays have shape (questions,)."""
    import numpy as np

    at, where = np.unique(np.round(distance, DECIMALS), return_inverse=True)
    return Answers(at, np.bincount(where, score, len(at)), np.bincount(where, 1 - score, len(at)))


def merge_answers(answers: Answers, most: int) -> Answers:
    """Merge neighbouring distances into at most `most` groups, each at the mean of its distances on the scale."""
    import numpy as np

    if len(answers.at) <= most:
        return answers
    group = np.arange(len(answers.at)) * most // len(answers.at)
    count = answers.right + answers.wrong
    scale = np.bincount(group, count * answers.scale) / np.bincount(group, count)
    return Answers(np.expm1(scale), np.bincount(group, answers.right), np.bincount(group, answers.wrong))


def add_logs(logarithms: Array) -> float:
    """Return the logarithm of a sum, given the logarithms of its terms; minus infinity for none."""
    import numpy as np

    most = np.max(logarithms, initial=-np.inf)
    return float(most + np.log(np.exp(logarithms - most).sum())) if np.isfinite(most) else -np.inf


def weigh_levels(right: float, wrong: float) -> Array:
    """Return the logarithms of the weights of one level for all answers, shape (LEVELS,)."""
    import numpy as np

    levels = get_levels()
    return np.asarray(right * levels.log + wrong * levels.log_rest - np.log(LEVELS))


@final
class Steps(NamedTuple):
    """Curves with one step, between two neighbouring distances `low` and `high`, shape (steps,).

    `before` and `after`, shape (steps, LEVELS), are the likelihoods of the answers up to the step and beyond it at each level. They are
    relative to the highest ones. `log_prior` is the logarithm of a step's prior, which is proportional to its gap, times the factors
    divided out of `before` and `after`.
    """

    low: Array
    high: Array
    before: Array
    after: Array
    log_prior: Array

    def weigh(self, allowed: Array) -> Array:
        """Return the logarithms of the weights of the steps, summed over the pairs of levels that are `allowed`, shape (LEVELS, LEVELS).
        The prior is even over all pairs that fall."""
        import numpy as np

        summed = ((self.before @ allowed) * self.after).sum(axis=1)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(summed) - np.log(get_levels().falls.sum()) + self.log_prior)

    def weigh_pairs(self) -> Array:
        """Return the weights of pairs of levels that fall, summed over all steps, as shares of their sum, shape (LEVELS, LEVELS)."""
        import numpy as np

        prior = np.exp(self.log_prior - self.log_prior.max())
        pairs = (self.before * prior[:, None]).T @ self.after * get_levels().falls
        return np.asarray(pairs / pairs.sum())


def weigh_steps(answers: Answers) -> Steps:
    """Weigh curves with one step. Needs two distances or more."""
    import numpy as np

    gaps = np.diff(answers.scale)
    right, wrong = np.cumsum(answers.right), np.cumsum(answers.wrong)
    levels = get_levels()
    before = right[:-1, None] * levels.log + wrong[:-1, None] * levels.log_rest
    after = (right[-1] - right[:-1, None]) * levels.log + (wrong[-1] - wrong[:-1, None]) * levels.log_rest
    most_before, most_after = before.max(axis=1), after.max(axis=1)
    return Steps(
        low=answers.at[:-1],
        high=answers.at[1:],
        before=np.exp(before - most_before[:, None]),
        after=np.exp(after - most_after[:, None]),
        log_prior=np.log(gaps / gaps.sum()) + most_before + most_after,
    )


@final
class Slopes(NamedTuple):
    """Gradual falls: logistic curves in the logarithm of distance, from one level to a lower one.

    `log_weight` has shape (WIDTHS, PLACES, pairs of levels). `places` are on the scale of `Answers.scale`.
    """

    log_weight: Array
    places: Array
    near: Array
    far: Array

    def recall_at(self, scale: float) -> Array:
        """Return each curve's recall at a distance, which is given on the scale, in the shape of `log_weight`."""
        import numpy as np

        kept = _share_kept(scale, self.places, np.array(WIDTHS)[:, None])
        return np.asarray(self.far + (self.near - self.far) * kept[..., None])

    def reach_of(self, share: float) -> Array:
        """Return the place on the scale where each curve falls below a share. It is infinite if the curve never does, and minus infinite if
        it always is below."""
        import numpy as np

        with np.errstate(divide="ignore", invalid="ignore"):
            needed = (share - self.far) / (self.near - self.far)
            place = self.places[:, None] + np.array(WIDTHS)[:, None, None] * np.log(np.maximum(0.0, 1 / needed - 1))
        return np.asarray(np.where(self.far >= share, np.inf, np.where(self.near < share, -np.inf, place)))


def _share_kept(scale: Any, place: Any, width: Any) -> Array:
    """Return the share of the fall that is still to come at a distance."""
    import numpy as np

    return np.asarray(1 / (1 + np.exp(np.clip((scale - place) / width, -60, 60))))


def weigh_slopes(answers: Answers) -> Slopes:
    """Weigh gradual falls. The prior is even over widths, places and pairs of levels, within windows and within decay."""
    import numpy as np

    answers = merge_answers(answers, MAX_GROUPS)
    coarse = _make_levels(SLOPE_LEVELS)
    first, second = np.nonzero(coarse.falls)
    near, far = coarse.values[first], coarse.values[second]
    places = np.linspace(answers.scale[0], answers.scale[-1], PLACES)
    kept = _share_kept(answers.scale, places[:, None], np.array(WIDTHS)[:, None, None])
    log_weight = np.empty((len(WIDTHS), PLACES, len(near)))
    for pair, (high, low) in enumerate(zip(near, far, strict=True)):  # one pair at a time, so that the arrays stay small
        recall = low + (high - low) * kept
        log_weight[..., pair] = np.log(recall) @ answers.right + np.log1p(-recall) @ answers.wrong
    return Slopes(log_weight - np.log(PLACES * len(near)), places, near, far)


@final
class Pieces(NamedTuple):
    """The logarithms of the weights of curves with two and three levels in any order, over all places where the level may change. They are
    minus infinite with too few distances."""

    two: float
    three: float


def weigh_pieces(answers: Answers, limit: float | None = None, least: float = 0.0) -> Pieces:
    """Weigh curves with two and three free levels.

    With a `limit`, count only curves that recall at least the share `least` at every distance up to it, under the same prior. A level that
    may begin before the limit counts as one that does.
    """
    import numpy as np

    answers = merge_answers(answers, MAX_PIECES_GROUPS)
    number = len(answers.at)
    if number < 2:
        return Pieces(-np.inf, -np.inf)
    levels = get_levels()
    right, wrong = (np.concatenate([[0.0], np.cumsum(each)]) for each in (answers.right, answers.wrong))
    first, last = np.triu_indices(number + 1, 1)
    likelihood = np.outer(right[last] - right[first], levels.log) + np.outer(wrong[last] - wrong[first], levels.log_rest)
    if limit is not None:
        begins_within = np.concatenate([[True], answers.at[:-1] < limit])[first]
        likelihood[np.ix_(begins_within, levels.values < least)] = -np.inf
    most = likelihood.max(axis=1)
    summed = np.full((number + 1, number + 1), -np.inf)
    summed[first, last] = most + np.log(np.exp(likelihood - most[:, None]).sum(axis=1)) - np.log(LEVELS)
    inner = np.arange(1, number)
    two = summed[0, inner] + summed[inner, number]
    first, last = (each + 1 for each in np.triu_indices(number - 1, 1))
    three = summed[0, first] + summed[first, last] + summed[last, number]
    return Pieces(add_logs(two) - np.log(len(two)), add_logs(three) - np.log(len(three)) if len(three) else -np.inf)
