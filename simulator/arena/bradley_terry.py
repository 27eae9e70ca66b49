"""Bradley-Terry ratings: those under which the matches as they ended are likeliest. They know no order of matches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

from longspan.simulator.arena.elo import SCALE, START, Match

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Fitted", "bradley_terry", "resampled"]

RESAMPLES: Final = 200
"""Resamples of the sources."""


@final
class Fitted(NamedTuple):
    """Ratings on Elo's scale with a mean of `start`; None where the matches do not link all systems. `padded`: a draw was added
    for each pair that met, since some systems never lost to, or never beat, the others, and have no finite rating."""

    ratings: dict[str, float] | None
    padded: bool


def bradley_terry(matches: Iterable[Match], systems: Sequence[str], *, start: float = START) -> Fitted:
    """The ratings of the systems. A draw counts as half a win for each."""
    found, padded = _fit(_wins(matches, systems))
    if found is None:
        return Fitted(None, False)
    return Fitted({system: start + SCALE * float(value) for system, value in zip(systems, found, strict=True)}, padded)


def resampled(matches: Sequence[Match], systems: Sequence[str], *, start: float = START, seed: int = 0) -> NDArray[np.float64] | None:
    """The ratings for as many sources drawn from those there are, again and again: an array of (resamples, systems).

    None where there are fewer than two sources, or where most resamples do not link all systems.
    """
    import numpy as np

    sources = sorted({match.source for match in matches if match.source is not None})
    if len(sources) < 2:
        return None
    by_source = np.array([_wins((match for match in matches if match.source == source), systems) for source in sources])
    random = np.random.default_rng(seed)
    drawn = random.multinomial(len(sources), [1 / len(sources)] * len(sources), size=RESAMPLES)
    weights, times = np.unique(drawn, axis=0, return_counts=True)  # of few sources the same are drawn again and again
    fits = [(_fit(np.tensordot(each, by_source, axes=1))[0], count) for each, count in zip(weights, times, strict=True)]
    found = [start + SCALE * fit for fit, count in fits if fit is not None for _ in range(count)]
    return np.array(found) if len(found) > RESAMPLES / 2 else None


def _wins(matches: Iterable[Match], systems: Sequence[str]) -> Any:
    """How often each system (rows) beat each (columns)."""
    import numpy as np

    place = {system: at for at, system in enumerate(systems)}
    wins = np.zeros((len(systems), len(systems)))
    for match in matches:
        wins[place[match.first], place[match.second]] += match.points
        wins[place[match.second], place[match.first]] += 1 - match.points
    return wins


def _fit(wins: Any) -> tuple[Any, bool]:
    """The logarithms of the strengths, with a mean of 0, and whether draws were added; None where nothing links all systems.

    They are finite where, and only where, everybody can be reached from everybody over wins (Ford, 1957).
    """
    import numpy as np
    from scipy.optimize import minimize
    from scipy.sparse.csgraph import connected_components

    met = (wins + wins.T) > 0
    if connected_components(met, directed=False)[0] > 1:
        return None, False
    padded = connected_components(wins > 0, directed=True, connection="strong")[0] > 1
    if padded:
        wins = wins + 0.5 * met

    def cost(strengths: Any) -> tuple[float, Any]:
        ahead = strengths[:, None] - strengths[None, :]
        unexpected = wins * (0.5 - 0.5 * np.tanh(ahead / 2))
        return float((wins * np.logaddexp(0, -ahead)).sum()), unexpected.sum(axis=0) - unexpected.sum(axis=1)

    def curvature(strengths: Any) -> Any:
        ahead = strengths[:, None] - strengths[None, :]
        steep = (wins + wins.T) * (1 - np.tanh(ahead / 2) ** 2) / 4
        return np.diag(steep.sum(axis=1)) - steep + 1e-9 * np.eye(len(wins))  # adding the same to all costs nothing

    found = minimize(cost, np.zeros(len(wins)), jac=True, hess=curvature, method="trust-exact", options={"gtol": 1e-7}).x
    return found - found.mean(), padded
