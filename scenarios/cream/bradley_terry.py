"""Bradley-Terry ratings: maximum likelihood ratings of the matches, regardless of their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

from longspan.scenarios.cream.elo import SCALE, START, Match

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["FittedRatings", "bootstrap_ratings", "bradley_terry"]

RESAMPLES: Final = 200
"""The number of bootstrap samples of the sources."""


@final
class FittedRatings(NamedTuple):
    """Ratings on Elo's scale with a mean of `start`, or None if the matches do not connect all systems.

    `padded` means that a draw was added for each pair that met, because a system that never lost or never won has no finite rating.
    """

    ratings: dict[str, float] | None
    padded: bool


def bradley_terry(matches: Iterable[Match], systems: Sequence[str], *, start: float = START) -> FittedRatings:
    """Fit the ratings of the systems. A draw counts as half a win for each side."""
    strengths, padded = _fit(_wins(matches, systems))
    if strengths is None:
        return FittedRatings(None, False)
    return FittedRatings({system: start + SCALE * float(value) for system, value in zip(systems, strengths, strict=True)}, padded)


def bootstrap_ratings(
    matches: Sequence[Match], systems: Sequence[str], *, start: float = START, seed: int = 0
) -> NDArray[np.float64] | None:
    """Fit the ratings to bootstrap samples of the sources. Return an array of shape (resamples, systems).

    Samples that do not connect all systems are dropped. Return None if at least half are dropped, or if there are fewer than two
    sources.
    """
    import numpy as np

    sources = sorted({match.source for match in matches if match.source is not None})
    if len(sources) < 2:
        return None
    by_source = np.array([_wins((match for match in matches if match.source == source), systems) for source in sources])
    random = np.random.default_rng(seed)
    drawn = random.multinomial(len(sources), [1 / len(sources)] * len(sources), size=RESAMPLES)
    weights, times = np.unique(drawn, axis=0, return_counts=True)  # few sources give few distinct samples
    fits = [(_fit(np.tensordot(weight, by_source, axes=1))[0], count) for weight, count in zip(weights, times, strict=True)]
    ratings = [start + SCALE * fit for fit, count in fits if fit is not None for _ in range(count)]
    return np.array(ratings) if len(ratings) > RESAMPLES / 2 else None


def _wins(matches: Iterable[Match], systems: Sequence[str]) -> Any:
    """Count how often each system (row) beat each other (column)."""
    import numpy as np

    index = {system: number for number, system in enumerate(systems)}
    wins = np.zeros((len(systems), len(systems)))
    for match in matches:
        wins[index[match.first], index[match.second]] += match.points
        wins[index[match.second], index[match.first]] += 1 - match.points
    return wins


def _fit(wins: Any) -> tuple[Any, bool]:
    """Return the logarithms of the strengths, with a mean of 0 (None if the systems are not connected), and whether draws were added.

    They are finite if and only if the graph of wins is strongly connected (Ford, 1957).
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
        return np.diag(steep.sum(axis=1)) - steep + 1e-9 * np.eye(len(wins))  # otherwise singular: shifting all strengths costs nothing

    strengths = minimize(cost, np.zeros(len(wins)), jac=True, hess=curvature, method="trust-exact", options={"gtol": 1e-7}).x
    return strengths - strengths.mean(), padded
