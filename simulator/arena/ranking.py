"""From scores to matches, from matches to ratings, and how far these can be relied on."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any, Final

from longspan.simulator.arena.bradley_terry import bradley_terry, resampled
from longspan.simulator.arena.elo import ROUNDING, Match, elo, outcome, over_orders
from longspan.simulator.arena.results import Check, Comparison, Paired, Result, Rules, Standing, mean, scored

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["cycles", "matches_of", "rank", "standings"]

REVERSED: Final = 0.05
"""In how many orders of matches, or resamples of sources, two neighbours may change places before the ranking is called unstable."""

Scores = Mapping[tuple[str, tuple[str, str]], Sequence[tuple[float, float]]]
"""By source and pair, the scores of each comparison that was decided."""


def rank(
    rules: Rules,
    *,
    judge: str,
    systems: Sequence[str],
    sentences: Mapping[str, Mapping[str, list[str]]],
    pairs: Sequence[tuple[str, tuple[str, str]]],
    comparisons: Sequence[Comparison] = (),
    checks: Sequence[Check] = (),
    notes: Sequence[str] = (),
) -> Result:
    """The result of an arena: `pairs` are what was to be compared, `comparisons` or `checks` what the judge made of it."""
    result = Result(
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
    scores = _checked(pairs, checks) if rules.metric == "faithfulness" else _compared(result)
    held = matches_of(rules, pairs, scores)
    placed, warnings = standings(rules, held, systems)
    return result.model_copy(update={"matches": held, "standings": placed, "warnings": [*warnings, *_undecided(result, pairs, scores)]})


def _undecided(result: Result, pairs: Sequence[tuple[str, tuple[str, str]]], scores: Scores) -> list[str]:
    asked, lost = len(result.comparisons) + len(result.checks), sum(pair not in scores for pair in pairs)
    reasons = [*(each.undecided for each in result.comparisons), *(each.undecided for each in result.checks)]
    why = next(filter(None, reasons), "")[:300]
    told = []
    if result.undecided:
        told.append(f"The judge did not decide {result.undecided} of {asked} comparisons; these count for nobody: {why}")
    if lost:
        told.append(f"{lost} of {len(pairs)} pairs of summaries have no score, for that reason or since a summary is empty, and no match")
    return told


# ---- matches


def _compared(result: Result) -> Scores:
    """The scores of each pair in each comparison of it, the pair in the order of the systems."""
    found: dict[tuple[str, tuple[str, str]], list[tuple[float, float]]] = defaultdict(list)
    place = {system: at for at, system in enumerate(result.systems)}
    for each in result.comparisons:
        if not each.undecided:
            by_system = {side.system: result.score(each, number) for number, side in enumerate(each.sides)}
            first, second = sorted(each.systems, key=place.__getitem__)
            one, other = by_system[first], by_system[second]
            if one is not None and other is not None:
                found[each.source, (first, second)].append((one, other))
    return found


def _checked(pairs: Sequence[tuple[str, tuple[str, str]]], checks: Iterable[Check]) -> Scores:
    known = {(check.source, check.system): scored(check) for check in checks}
    found: dict[tuple[str, tuple[str, str]], list[tuple[float, float]]] = {}
    for source, (first, second) in pairs:
        one, other = known.get((source, first)), known.get((source, second))
        if one is not None and other is not None:
            found[source, (first, second)] = [(one, other)]
    return found


def matches_of(rules: Rules, pairs: Sequence[tuple[str, tuple[str, str]]], scores: Scores) -> list[Paired]:
    """The matches, in the order of the rules. A pair that nothing was decided about has none."""
    by_source = [_paired(rules, source, pair, decided) for source, pair in pairs if (decided := scores.get((source, pair)))]
    found = by_source
    if rules.match == "aggregate":
        over: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
        for each in by_source:
            over[each.systems].append(each.scores)
        found = [_paired(rules, None, pair, held) for pair, held in over.items()]
    if rules.order == "random":
        return Random(rules.seed).sample(found, len(found))
    if rules.order == "pairs":
        first = {pair: at for at, pair in enumerate(dict.fromkeys(pair for _, pair in pairs))}
        return sorted(found, key=lambda each: first[each.systems])
    return found


def _paired(rules: Rules, source: str | None, pair: tuple[str, str], scores: Sequence[tuple[float, float]]) -> Paired:
    one, other = mean([each[0] for each in scores]), mean([each[1] for each in scores])
    return Paired(source=source, systems=pair, scores=(one, other), of=len(scores), points=outcome(one, other, rules.draw))


# ---- ratings


def standings(rules: Rules, held: Sequence[Paired], systems: Sequence[str]) -> tuple[list[Standing], list[str]]:
    """The systems by their mean rating over random orders, the highest first, and what is to be warned of."""
    import numpy as np

    matches = [Match(*each.systems, each.points, each.source) for each in held]
    rated = elo(matches, systems, k=rules.k, start=rules.start)
    ratings = over_orders(matches, systems, orders=rules.orders, k=rules.k, start=rules.start, seed=rules.seed)
    means, (lows, highs) = ratings.mean(axis=0), np.quantile(ratings, [0.025, 0.975], axis=0)
    fitted = bradley_terry(matches, systems, start=rules.start)
    drawn = resampled(matches, systems, start=rules.start, seed=rules.seed)
    sound = fitted.ratings is not None and not fitted.padded  # what a draw was added to has no interval
    between = np.quantile(drawn, [0.025, 0.975], axis=0) if sound and drawn is not None else None
    records = {system: Counter(_points(held, system)) for system in systems}
    scores = {system: _scores(held, system) for system in systems}
    found = [
        Standing(
            system=system,
            elo=rated[system],
            mean=float(means[at]),
            low=float(lows[at]),
            high=float(highs[at]),
            strength=fitted.ratings[system] if fitted.ratings is not None else None,
            strength_low=float(between[0, at]) if between is not None else None,
            strength_high=float(between[1, at]) if between is not None else None,
            wins=records[system][1.0],
            draws=records[system][0.5],
            losses=records[system][0.0],
            score=mean(scores[system]) if scores[system] else None,
        )
        for at, system in enumerate(systems)
    ]
    place = {system: at for at, system in enumerate(systems)}
    found.sort(key=lambda each: (-round(each.mean, 6), place[each.system]))
    warnings = [
        *_unlinked(fitted.ratings is None, matches),
        *_swaying(found, ratings[:, [place[each.system] for each in found]], "orders of the matches"),
        *(_swaying(found, drawn[:, [place[each.system] for each in found]], "resamples of the sources") if drawn is not None else []),
        *_otherwise(found),
        *(f"The pairs are not transitive: {' beats '.join((*cycle, cycle[0]))}. No rating can be true to them" for cycle in cycles(held)),
    ]
    if fitted.padded:
        warnings.append(
            "Somebody never lost, or never won, against the others: Bradley-Terry has no finite rating for that, and has been given one "
            "draw more for each pair"
        )
    return found, warnings


def _points(held: Iterable[Paired], system: str) -> list[float]:
    return [each.points if each.systems[0] == system else 1 - each.points for each in held if system in each.systems]


def _scores(held: Iterable[Paired], system: str) -> list[float]:
    return [each.scores[each.systems.index(system)] for each in held if system in each.systems]


# ---- warnings


def _unlinked(unlinked: bool, matches: Sequence[Match]) -> list[str]:
    if not matches:
        return ["No match could be held: all ratings are what they began with"]
    return ["Some systems never met the others, not even by way of third ones: their ratings cannot be compared"] if unlinked else []


def _swaying(found: Sequence[Standing], ratings: NDArray[np.float64] | Any, what: str) -> list[str]:
    """Neighbours whose places hang on chance. `ratings`: an array of (draws, systems), in the order of `found`."""
    told = []
    for at, (upper, lower) in enumerate(pairwise(found)):
        share = float((ratings[:, at] < ratings[:, at + 1] - ROUNDING).mean())
        if upper.mean - lower.mean > ROUNDING and share > REVERSED:
            told.append(f"The ranking is not stable: {lower.system} comes before {upper.system} in {share:.0%} of {len(ratings):,} {what}")
    return told


def _otherwise(found: Sequence[Standing]) -> list[str]:
    """Where the other ways of rating rank neighbours otherwise."""
    told = []
    for upper, lower in pairwise(found):
        if upper.mean - lower.mean <= ROUNDING:
            continue
        by = []
        if upper.elo < lower.elo - ROUNDING:
            by.append("by Elo in the order that was chosen")
        if upper.strength is not None and lower.strength is not None and upper.strength < lower.strength - 1e-3:
            by.append("by Bradley-Terry")
        if upper.score is not None and lower.score is not None and upper.score < lower.score - ROUNDING:
            by.append("by the mean of the scores")
        if by:
            told.append(f"{lower.system} comes before {upper.system} {' and '.join(by)}")
    return told


def cycles(held: Iterable[Paired]) -> list[list[str]]:
    """Systems each of which won more points than the next in their matches, and the last more than the first: one such round for
    each group that has any."""
    points: dict[tuple[str, str], float] = defaultdict(float)
    for each in held:
        points[each.systems] += each.points - 0.5
    beats: dict[str, list[str]] = defaultdict(list)
    for (first, second), ahead in points.items():
        if abs(ahead) > ROUNDING:
            winner, loser = (first, second) if ahead > 0 else (second, first)
            beats[winner].append(loser)
    found: list[list[str]] = []
    for system in list(beats):
        round_ = _round(beats, system)
        if round_ and not any(set(round_) & set(other) for other in found):
            found.append(round_)
    return found


def _round(beats: Mapping[str, list[str]], start: str) -> list[str]:
    """The shortest way from a system over those it beats back to itself; empty where there is none."""
    ways = [[start]]
    seen = {start}
    for way in ways:
        for loser in beats.get(way[-1], ()):
            if loser == start:
                return way
            if loser not in seen:
                seen.add(loser)
                ways.append([*way, loser])
    return []
