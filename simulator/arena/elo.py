"""Elo ratings of matches (CREAM, section 4.1.1): in one order, and over many, since a rating depends on the order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log, tanh
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["SCALE", "START", "K", "Match", "elo", "expected", "outcome", "over_orders"]

K: Final = 32.0
START: Final = 1000.0
"""The paper states neither. These are the usual ones."""

SCALE: Final = 400 / log(10)
"""Points for each unit of the logarithm of the odds of winning."""

ROUNDING: Final = 1e-9
"""Scores that differ by less are equal."""


@final
class Match(NamedTuple):
    """Two systems that met, and the points of the first: 1 for a win, 0.5 for a draw, 0 for a loss. `source`: over which source,
    None for all of them at once."""

    first: str
    second: str
    points: float
    source: str | None = None


def outcome(first: float, second: float, draw: float = 0.0) -> float:
    """The points of the first of two scores, the higher of which wins; scores that differ by no more than `draw` are a draw."""
    if abs(first - second) <= draw + ROUNDING:
        return 0.5
    return 1.0 if first > second else 0.0


def expected(rating: float, opponent: float) -> float:
    """The points to be expected: E = 1 / (1 + 10 ** ((opponent - rating) / 400)), without its overflow."""
    return 0.5 + 0.5 * tanh((rating - opponent) / (2 * SCALE))


def elo(matches: Iterable[Match], systems: Sequence[str], *, k: float = K, start: float = START) -> dict[str, float]:
    """The ratings after the matches, played in their order; what one gains the other loses."""
    ratings = dict.fromkeys(systems, start)
    for match in matches:
        gain = k * (match.points - expected(ratings[match.first], ratings[match.second]))
        ratings[match.first] += gain
        ratings[match.second] -= gain
    return ratings


def over_orders(
    matches: Sequence[Match], systems: Sequence[str], *, orders: int, k: float = K, start: float = START, seed: int = 0
) -> NDArray[np.float64]:
    """The ratings after the matches in random orders: an array of (orders, systems). In which order they are given changes nothing."""
    import numpy as np

    place = {system: at for at, system in enumerate(systems)}
    played = sorted((place[match.first], place[match.second], match.points) for match in matches)
    ends, points = np.array([each[:2] for each in played]).reshape(-1, 2), np.array([each[2] for each in played])
    random = np.random.default_rng(seed)
    most = max(1, 16_000_000 // max(1, len(played)))  # orders that fit into memory at once
    blocks = [_played(ends, points, len(systems), min(most, orders - done), k, start, random) for done in range(0, orders, most)]
    return np.concatenate(blocks)


def _played(ends: Any, points: Any, systems: int, orders: int, k: float, start: float, random: np.random.Generator) -> Any:
    import numpy as np

    ratings = np.full((orders, systems), start)
    rows = np.arange(orders)
    for turn in random.permuted(np.tile(np.arange(len(points), dtype=np.int32), (orders, 1)), axis=1).T:
        first, second = ends[turn].T
        gain = k * (points[turn] - (0.5 + 0.5 * np.tanh((ratings[rows, first] - ratings[rows, second]) / (2 * SCALE))))
        ratings[rows, first] += gain
        ratings[rows, second] -= gain
    return ratings
