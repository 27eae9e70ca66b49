"""Elo ratings of matches (CREAM, section 4.1.1), in one order and averaged over many, since the ratings depend on the order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log, tanh
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["SCALE", "START", "K", "Match", "expected_points", "match_points", "over_orders", "rate_systems"]

K: Final = 32.0
START: Final = 1000.0
"""Usual values of K and START, because the paper does not state them."""

SCALE: Final = 400 / log(10)
"""The number of rating points per unit of the log odds of winning."""

ROUNDING: Final = 1e-9
"""Scores that differ by less than this are equal."""


@final
class Match(NamedTuple):
    """A match of two systems, with the points of the first: 1 for a win, 0.5 for a draw, 0 for a loss. `source` is None for a match
    over all sources."""

    first: str
    second: str
    points: float
    source: str | None = None


def match_points(first: float, second: float, draw: float = 0.0) -> float:
    """Return the points of the first of two scores. The higher score wins; a difference of at most `draw` is a draw."""
    if abs(first - second) <= draw + ROUNDING:
        return 0.5
    return 1.0 if first > second else 0.0


def expected_points(rating: float, opponent: float) -> float:
    """Return the expected points E = 1 / (1 + 10 ** ((opponent - rating) / 400)), without overflow."""
    return 0.5 + 0.5 * tanh((rating - opponent) / (2 * SCALE))


def rate_systems(matches: Iterable[Match], systems: Sequence[str], *, k: float = K, start: float = START) -> dict[str, float]:
    """Return the ratings after the matches, played in the given order."""
    ratings = dict.fromkeys(systems, start)
    for match in matches:
        gain = k * (match.points - expected_points(ratings[match.first], ratings[match.second]))
        ratings[match.first] += gain
        ratings[match.second] -= gain
    return ratings


def over_orders(
    matches: Sequence[Match], systems: Sequence[str], *, orders: int, k: float = K, start: float = START, seed: int = 0
) -> NDArray[np.float64]:
    """Return the ratings after the matches in random orders, as an array of shape (orders, systems).

    The order of `matches` does not matter.
    """
    import numpy as np

    index = {system: number for number, system in enumerate(systems)}
    played = sorted((index[match.first], index[match.second], match.points) for match in matches)
    pairs, points = np.array([match[:2] for match in played]).reshape(-1, 2), np.array([match[2] for match in played])
    random = np.random.default_rng(seed)
    block = max(1, 16_000_000 // max(1, len(played)))  # the number of orders that fit into memory together
    blocks = [_play_orders(pairs, points, len(systems), min(block, orders - done), k, start, random) for done in range(0, orders, block)]
    return np.concatenate(blocks)


def _play_orders(pairs: Any, points: Any, systems: int, orders: int, k: float, start: float, random: np.random.Generator) -> Any:
    import numpy as np

    ratings = np.full((orders, systems), start)
    rows = np.arange(orders)
    for round_ in random.permuted(np.tile(np.arange(len(points), dtype=np.int32), (orders, 1)), axis=1).T:
        first, second = pairs[round_].T
        gain = k * (points[round_] - (0.5 + 0.5 * np.tanh((ratings[rows, first] - ratings[rows, second]) / (2 * SCALE))))
        ratings[rows, first] += gain
        ratings[rows, second] -= gain
    return ratings
