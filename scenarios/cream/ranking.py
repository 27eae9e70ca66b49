"""Turn scores into matches and matches into ratings, and warn where these are unreliable."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any, Final

from longspan.scenarios.cream.arena_result import ArenaResult, Check, Comparison, Paired, Rules, Standing, check_score, exact_mean
from longspan.scenarios.cream.bradley_terry import bootstrap_ratings, bradley_terry
from longspan.scenarios.cream.elo import ROUNDING, Match, match_points, over_orders, rate_systems

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["find_cycles", "matches_of", "order_systems", "rank_systems"]

UNSTABLE: Final = 0.05
"""A ranking is unstable if two neighbours swap in more than this share of the orders of matches, or of the resamples of sources."""

Scores = Mapping[tuple[str, tuple[str, str]], Sequence[tuple[float, float]]]
"""The scores of each decided comparison, by source and pair."""


def rank_systems(
    rules: Rules,
    *,
    judge: str,
    systems: Sequence[str],
    sentences: Mapping[str, Mapping[str, list[str]]],
    pairs: Sequence[tuple[str, tuple[str, str]]],
    comparisons: Sequence[Comparison] = (),
    checks: Sequence[Check] = (),
    notes: Sequence[str] = (),
) -> ArenaResult:
    """Compute the result of an arena from the `pairs` to compare and the judge's `comparisons` or `checks`."""
    result = ArenaResult(
        judge=judge,
        rules=rules,
        systems=list(systems),
        sentences={source: dict(by_system) for source, by_system in sentences.items()},
        comparisons=list(comparisons),
        checks=list(checks),
        matches=[],
        standings=[],
        warnings=[],
        notes=list(notes),
    )
    scores = _checked_scores(pairs, checks) if rules.metric == "faithfulness" else _compared_scores(result)
    matches = matches_of(rules, pairs, scores)
    ranked, warnings = order_systems(rules, matches, systems)
    return result.model_copy(
        update={"matches": matches, "standings": ranked, "warnings": [*warnings, *_warn_undecided(result, pairs, scores)]}
    )


def _warn_undecided(result: ArenaResult, pairs: Sequence[tuple[str, tuple[str, str]]], scores: Scores) -> list[str]:
    asked, lost = len(result.comparisons) + len(result.checks), sum(pair not in scores for pair in pairs)
    why = next(filter(None, result.undecided_reasons), "")[:300]
    warnings = []
    if result.undecided:
        warnings.append(f"The judge did not decide {result.undecided} of {asked} comparisons, which do not count: {why}")
    if lost:
        warnings.append(
            f"{lost} of {len(pairs)} pairs of summaries have no score and no match, for that reason or because a summary is empty"
        )
    return warnings


# ---- matches


def _compared_scores(result: ArenaResult) -> Scores:
    """Return the scores of each pair in each of its comparisons, in the order of the systems."""
    scores: dict[tuple[str, tuple[str, str]], list[tuple[float, float]]] = defaultdict(list)
    index = {system: at for at, system in enumerate(result.systems)}
    for comparison in result.comparisons:
        if not comparison.undecided:
            by_system = {side.system: result.score(comparison, number) for number, side in enumerate(comparison.sides)}
            first, second = sorted(comparison.systems, key=index.__getitem__)
            one, other = by_system[first], by_system[second]
            if one is not None and other is not None:
                scores[comparison.source, (first, second)].append((one, other))
    return scores


def _checked_scores(pairs: Sequence[tuple[str, tuple[str, str]]], checks: Iterable[Check]) -> Scores:
    known = {(check.source, check.system): check_score(check) for check in checks}
    scores: dict[tuple[str, tuple[str, str]], list[tuple[float, float]]] = {}
    for source, (first, second) in pairs:
        one, other = known.get((source, first)), known.get((source, second))
        if one is not None and other is not None:
            scores[source, (first, second)] = [(one, other)]
    return scores


def matches_of(rules: Rules, pairs: Sequence[tuple[str, tuple[str, str]]], scores: Scores) -> list[Paired]:
    """Return the matches in the order that the rules require. A pair without a decided comparison has no match."""
    by_source = [_pair_scores(rules, source, pair, decided) for source, pair in pairs if (decided := scores.get((source, pair)))]
    matches = by_source
    if rules.match == "aggregate":
        by_pair: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
        for match in by_source:
            by_pair[match.systems].append(match.scores)
        matches = [_pair_scores(rules, None, pair, decided) for pair, decided in by_pair.items()]
    if rules.order == "random":
        return Random(rules.seed).sample(matches, len(matches))
    if rules.order == "pairs":
        first = {pair: at for at, pair in enumerate(dict.fromkeys(pair for _, pair in pairs))}
        return sorted(matches, key=lambda match: first[match.systems])
    return matches


def _pair_scores(rules: Rules, source: str | None, pair: tuple[str, str], scores: Sequence[tuple[float, float]]) -> Paired:
    one, other = exact_mean([score for score, _ in scores]), exact_mean([score for _, score in scores])
    return Paired(source=source, systems=pair, scores=(one, other), of=len(scores), points=match_points(one, other, rules.draw))


# ---- ratings


def order_systems(rules: Rules, paired: Sequence[Paired], systems: Sequence[str]) -> tuple[list[Standing], list[str]]:
    """Return the systems by their mean rating over random orders, highest first, and warnings."""
    import numpy as np

    matches = [Match(*match.systems, match.points, match.source) for match in paired]
    rated = rate_systems(matches, systems, k=rules.k, start=rules.start)
    ratings = over_orders(matches, systems, orders=rules.orders, k=rules.k, start=rules.start, seed=rules.seed)
    means, (lows, highs) = ratings.mean(axis=0), np.quantile(ratings, [0.025, 0.975], axis=0)
    fitted = bradley_terry(matches, systems, start=rules.start)
    resamples = bootstrap_ratings(matches, systems, start=rules.start, seed=rules.seed)
    finite = fitted.ratings is not None and not fitted.padded  # with added draws there is no interval
    interval = np.quantile(resamples, [0.025, 0.975], axis=0) if finite and resamples is not None else None
    records = {system: Counter(_points(paired, system)) for system in systems}
    scores = {system: _scores(paired, system) for system in systems}
    ranked = [
        Standing(
            system=system,
            elo=rated[system],
            mean=float(means[at]),
            low=float(lows[at]),
            high=float(highs[at]),
            strength=fitted.ratings[system] if fitted.ratings is not None else None,
            strength_low=float(interval[0, at]) if interval is not None else None,
            strength_high=float(interval[1, at]) if interval is not None else None,
            wins=records[system][1.0],
            draws=records[system][0.5],
            losses=records[system][0.0],
            score=exact_mean(scores[system]) if scores[system] else None,
        )
        for at, system in enumerate(systems)
    ]
    index = {system: at for at, system in enumerate(systems)}
    ranked.sort(key=lambda standing: (-round(standing.mean, 6), index[standing.system]))
    warnings = [
        *_warn_disconnected(fitted.ratings is None, matches),
        *_unstable(ranked, ratings[:, [index[standing.system] for standing in ranked]], "orders of the matches"),
        *(
            _unstable(ranked, resamples[:, [index[standing.system] for standing in ranked]], "resamples of the sources")
            if resamples is not None
            else []
        ),
        *_disagreements(ranked),
        *(
            f"The pairs are not transitive: {' beats '.join((*cycle, cycle[0]))}. No rating can represent that"
            for cycle in find_cycles(paired)
        ),
    ]
    if fitted.padded:
        warnings.append(
            "A system never lost, or never won, against the others, so that it has no finite Bradley-Terry rating: one draw was added for "
            "each pair"
        )
    return ranked, warnings


def _points(matches: Iterable[Paired], system: str) -> list[float]:
    return [match.points if match.systems[0] == system else 1 - match.points for match in matches if system in match.systems]


def _scores(matches: Iterable[Paired], system: str) -> list[float]:
    return [match.scores[match.systems.index(system)] for match in matches if system in match.systems]


# ---- warnings


def _warn_disconnected(disconnected: bool, matches: Sequence[Match]) -> list[str]:
    if not matches:
        return ["There was no match: all ratings are the initial one"]
    return ["Some systems never met the others, not even indirectly: their ratings cannot be compared"] if disconnected else []


def _unstable(ranked: Sequence[Standing], ratings: NDArray[np.float64] | Any, what: str) -> list[str]:
    """Warn about neighbours whose order is due to chance. `ratings` is an array of shape (samples, systems), in the order of `ranked`."""
    warnings = []
    for at, (upper, lower) in enumerate(pairwise(ranked)):
        share = float((ratings[:, at] < ratings[:, at + 1] - ROUNDING).mean())
        if upper.mean - lower.mean > ROUNDING and share > UNSTABLE:
            warnings.append(
                f"The ranking is not stable: {lower.system} is ahead of {upper.system} in {share:.0%} of {len(ratings):,} {what}"
            )
    return warnings


def _disagreements(ranked: Sequence[Standing]) -> list[str]:
    """Warn about neighbours that other ratings rank differently."""
    warnings = []
    for upper, lower in pairwise(ranked):
        if upper.mean - lower.mean <= ROUNDING:
            continue
        by = []
        if upper.elo < lower.elo - ROUNDING:
            by.append("by Elo in the chosen order")
        if upper.strength is not None and lower.strength is not None and upper.strength < lower.strength - 1e-3:
            by.append("by Bradley-Terry")
        if upper.score is not None and lower.score is not None and upper.score < lower.score - ROUNDING:
            by.append("by the mean score")
        if by:
            warnings.append(f"{lower.system} is ahead of {upper.system} {' and '.join(by)}")
    return warnings


def find_cycles(matches: Iterable[Paired]) -> list[list[str]]:
    """Return cycles of systems: each won more points than the next in their matches, and the last won more than the first. Cycles do not
    overlap."""
    points: dict[tuple[str, str], float] = defaultdict(float)
    for match in matches:
        points[match.systems] += match.points - 0.5
    beats: dict[str, list[str]] = defaultdict(list)
    for (first, second), ahead in points.items():
        if abs(ahead) > ROUNDING:
            winner, loser = (first, second) if ahead > 0 else (second, first)
            beats[winner].append(loser)
    cycles_: list[list[str]] = []
    for system in list(beats):
        cycle = _cycle(beats, system)
        if cycle and not any(set(cycle) & set(other) for other in cycles_):
            cycles_.append(cycle)
    return cycles_


def _cycle(beats: Mapping[str, list[str]], start: str) -> list[str]:
    """Return the shortest cycle of wins through a system, or an empty list."""
    paths = [[start]]
    seen = {start}
    for path in paths:
        for loser in beats.get(path[-1], ()):
            if loser == start:
                return path
            if loser not in seen:
                seen.add(loser)
                paths.append([*path, loser])
    return []
