"""How far back an agent remembers, and what kind of limit that is: a fit to questions that were asked at many distances.

What is fitted are a few simple ways to forget: a window of messages or of tokens, decay, missing some whatever the distance, no limit, and
nothing at all. Each has its parameters on a grid; the likelihoods are averaged over the grid, so that simpler ways need no penalty. The
reach is the furthest distance at which at least half of the facts are recalled, averaged over all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

from longspan.simulator.results.reach import Kind, Unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

__all__ = ["Reach", "Recalled", "reach"]

HALF: Final = 0.5

PLACES: Final = 100
"""Grid points of the distance of a limit."""

SHARP: Final = (0.01, 0.04, 0.1)
"""How wide a window's edge is, in the logarithm of distance."""

SOFT: Final = (0.3, 0.45, 0.65, 0.9, 1.3)
"""The same of decay: one that halves with every so many tokens is at about .65."""

CEILINGS: Final = {0.6: 0.02, 0.75: 0.04, 0.85: 0.09, 0.92: 0.2, 0.97: 0.3, 0.995: 0.35}
"""The share recalled within a limit, with its weight: most agents recall nearly all that is near. Of an agent without limit, it is one of
the last three."""

FLOORS: Final = {0.0: 0.6, 0.03: 0.3, 0.1: 0.1}
"""The share recalled beyond a limit, above guessing, with its weight."""

SHARES: Final = tuple(0.025 * step for step in range(3, 36))
"""The share recalled by one that misses some, near and far alike."""

AT_ONCE: Final = 64
"""Questions that are weighed at a time."""

TAIL: Final = 0.025


@final
class Recalled(NamedTuple):
    """A question: how far back its fact was told, in tokens, in messages (of both sides) and in seconds of virtual time, the score and
    what a guess earns."""

    tokens: float
    messages: float
    seconds: float
    score: float
    chance: float


@final
class Distance(NamedTuple):
    """A distance with its 95% credible interval. 0: nearer than any that was asked; infinite: further."""

    value: float
    low: float
    high: float


@final
@dataclass(frozen=True, slots=True)
class Reach:
    """The reach in each unit; the `share` recalled within and `beyond` it, None if nothing was asked there; and how likely each kind of
    limit is."""

    distances: dict[Unit, Distance]
    share: tuple[float, float, float]
    beyond: float | None
    kinds: dict[Kind, float]


class _Weighed(NamedTuple):
    """Parameters of one way to forget: the logarithms of their likelihoods, and the reach that each means."""

    likelihood: Array
    reach: Array


def reach(asked: Sequence[Recalled]) -> Reach | None:
    """Fit questions; None without any. Takes time linear in their number, and memory that does not depend on it."""
    import numpy as np

    if not asked:
        return None
    score = np.array([each.score for each in asked])
    chance = np.array([each.chance for each in asked])
    flat = dict(_flat(score, chance))
    units: tuple[Unit, ...] = ("tokens", "messages", "seconds")
    limits = {unit: _limited(np.array([getattr(each, unit) for each in asked], dtype=float), score, chance) for unit in units}
    likeliest = max(float(each.likelihood.max()) for each in (*flat.values(), *(way for ways in limits.values() for way in ways)))
    ways: dict[Kind, _Weighed] = {
        "window of messages": limits["messages"][0],
        "window of tokens": limits["tokens"][0],
        "decay": limits["tokens"][1],
        **flat,
    }
    weights = {kind: float(np.exp(way.likelihood - likeliest).mean()) for kind, way in ways.items()}
    whole = sum(weights.values())
    distances = {unit: _quantiles([*found, *flat.values()]) for unit, found in limits.items()}
    beyond = [each.score for each in asked if each.tokens > distances["tokens"].value]
    return Reach(
        distances,
        _share(flat["misses some"]),
        sum(beyond) / len(beyond) if beyond else None,
        {kind: weight / whole for kind, weight in weights.items()},
    )


def _likelihood(probability: Callable[[slice], Array], score: Array) -> Array:
    """Return the logarithm of the likelihood of the scores. `probability` says how likely a slice of the questions is to be answered, by
    parameters (rows) and questions (columns). Shares of a score count as shares of an observation."""
    import numpy as np

    total: Array | float = 0.0
    for start in range(0, len(score), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        p = np.clip(probability(part), 1e-4, 1 - 1e-4)
        total = total + (score[part] * np.log(p) + (1 - score[part]) * np.log1p(-p)).sum(axis=-1)
    return np.asarray(total)


def _flat(score: Array, chance: Array) -> Iterator[tuple[Kind, _Weighed]]:
    """Yield the ways to forget for which distance does not matter."""
    import numpy as np

    shares: dict[Kind, Sequence[float]] = {"misses some": SHARES, "no limit": [*CEILINGS][-3:], "nothing": [*FLOORS][:2]}
    for kind, values in shares.items():
        above = np.array(values)
        likelihood = _likelihood(lambda part, above=above: chance[part] + above[:, None] * (1 - chance[part]), score)  # type: ignore[misc]
        yield kind, _Weighed(likelihood, np.where(chance.mean() + above * (1 - chance.mean()) >= HALF, inf, 0.0))


def _limited(distance: Array, score: Array, chance: Array) -> tuple[_Weighed, _Weighed]:
    """Return a window, and decay, in distances of one unit."""
    import numpy as np

    near, far = max(distance.min(), 1e-9), max(distance.max(), 2e-9)
    places = np.geomspace(near, far, PLACES)
    return _fitted(places, SHARP, distance, score, chance), _fitted(places, SOFT, distance, score, chance)


def _fitted(places: Array, widths: Sequence[float], distance: Array, score: Array, chance: Array) -> _Weighed:
    import numpy as np

    place, width, ceiling, floor = (each.reshape(-1, 1) for each in np.meshgrid(places, widths, [*CEILINGS], [*FLOORS], indexing="ij"))
    logarithm = np.log(np.maximum(distance, 1e-9))

    def probability(part: slice) -> Array:
        with np.errstate(over="ignore"):
            kept = 1 / (1 + np.exp((logarithm[part] - np.log(place)) / width))
        low = chance[part] + floor * (1 - chance[part])
        found: Array = low + np.maximum(ceiling - low, 0) * kept
        return found

    weight = np.multiply.outer(np.array([*CEILINGS.values()]), np.array([*FLOORS.values()])) * len(CEILINGS) * len(FLOORS)
    likelihood = _likelihood(probability, score) + np.log(np.tile(weight.ravel(), len(places) * len(widths)))
    guessed = float(chance.mean())
    low = guessed + floor * (1 - guessed)
    needed = (HALF - low) / (ceiling - low)
    return _Weighed(likelihood, (place * (1 / needed - 1) ** width)[:, 0])


def _quantiles(found: Sequence[_Weighed]) -> Distance:
    import numpy as np

    reached = np.concatenate([each.reach for each in found])
    likeliest = max(each.likelihood.max() for each in found)
    weight = np.concatenate([np.exp(each.likelihood - likeliest) / each.likelihood.size for each in found])
    order = np.argsort(reached)
    share = np.cumsum(weight[order]) / weight.sum()
    low, value, high = (float(reached[order][min(int(np.searchsorted(share, at)), len(share) - 1)]) for at in (TAIL, HALF, 1 - TAIL))
    return Distance(value, low, high)


def _share(found: _Weighed) -> tuple[float, float, float]:
    """Return the share recalled if distance does not matter, with its interval."""
    import numpy as np

    weight = np.exp(found.likelihood - found.likelihood.max())
    share = np.cumsum(weight) / weight.sum()
    value, low, high = (SHARES[min(int(np.searchsorted(share, at)), len(SHARES) - 1)] for at in (HALF, TAIL, 1 - TAIL))
    return value, low, high
