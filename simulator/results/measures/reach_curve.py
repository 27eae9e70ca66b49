"""The curve of recall by distance at the top of pages about reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, log
from statistics import fmean
from typing import Final

from longspan.simulator.base.document import Band, Curve, CurvePoint
from longspan.simulator.base.shares import format_percent
from longspan.simulator.base.sizes import format_tokens
from longspan.simulator.base.tables import Table
from longspan.simulator.contract.rungs import OUTCOMES
from longspan.simulator.results.analysis.reach_fit import estimate_share
from longspan.simulator.results.reach_result import Count, Extent, ReachResult

__all__ = ["make_curve"]

MAX_POINTS: Final = 9

LEAST_QUESTIONS: Final = 4
"""The fewest questions in a point. With fewer, its interval would span nearly everything."""


def make_curve(agent: str, note: str, each: ReachResult, answers: Sequence[tuple[int, float]], at_once: Sequence[float]) -> Curve:
    """Return the curve of an agent's result, with a note on its runs.

    `answers` has the distance in tokens and the score of each plain fact whose question came later, nearest first. `at_once` has the scores
    of facts whose question was in the same message.
    """
    number = min(MAX_POINTS, len(answers) // LEAST_QUESTIONS) or 1
    groups = [answers[len(answers) * part // number : len(answers) * (part + 1) // number] for part in range(number)]
    return Curve(
        agent=agent,
        note=note,
        brief=each.brief,
        sentence=each.sentence,
        points=[_make_point(group) for group in groups],
        start=_make_start(at_once) if at_once else None,
        fitted=_fit_line(each, answers),
        band=_make_band(each),
        levels={"a guess among all values": each.chance, "among values already stated": each.heard} if each.chance else {},
        tables=[*_make_tables(each)],
    )


def _make_point(group: Sequence[tuple[int, float]]) -> CurvePoint:
    scores = [score for _, score in group]
    text = f"{_count(scores)}, {format_tokens(group[0][0])} to {format_tokens(group[-1][0])} tokens back"
    distance = exp(fmean(log(max(1, tokens)) for tokens, _ in group))
    return CurvePoint(distance, fmean(scores), *_find_ends(scores), len(scores), text)


def _make_start(scores: Sequence[float]) -> CurvePoint:
    return CurvePoint(0, fmean(scores), *_find_ends(scores), len(scores), f"{_count(scores)}, asked at once")


def _find_ends(scores: Sequence[float]) -> tuple[float, float]:
    """Return the ends of the interval of a share, extended to include a share of 0 or 1.

    Such a share lies slightly outside its credible interval.
    """
    mean, estimate = fmean(scores), estimate_share(scores)
    return min(mean, estimate.low), max(mean, estimate.high)


def _count(scores: Sequence[float]) -> str:
    return f"{Count(asked=len(scores), right=sum(scores)).text} right"


def _fit_line(each: ReachResult, answers: Sequence[tuple[int, float]]) -> Sequence[tuple[float, float]]:
    """Return the corners of the fitted line: one level, or two levels joined across the interval of the drop.

    That interval is short for a window and long for decay.
    """
    first, last = max(1.0, answers[0][0]), max(1.0, answers[-1][0])
    near, far, drop = each.near.value or 0, each.far.value or 0, each.drop and each.drop.tokens
    if not each.can or each.hedges or not each.fits:
        return ()
    if drop is not None:
        low, high = max(first, drop.low or 0), min(last, drop.high or last)
        return [(first, near), (low, near), (max(low, high), far), (last, far)]
    level = each.share.value or 0
    return [(first, level), (last, level)] if each.alike else ()


def _make_band(each: ReachResult) -> Band | None:
    """Return the reach, or else the drop, in tokens."""
    for name, found in (("reach", each.reach and each.reach.tokens), ("falls at", each.drop and each.drop.tokens)):
        if found and found.value is not None:
            end = "the furthest" if found.high is None else format_tokens(found.high)
            return Band(
                found.low or 0, found.value, found.high, f"{name} {format_tokens(found.value)} ({format_tokens(found.low or 0)} to {end})"
            )
    return None


def _make_tables(each: ReachResult) -> Iterator[Table]:
    if each.by_type:
        rows = [[name, found.count.text, _show(found.share)] for name, found in each.by_type.items()]
        yield Table(title="By type of fact", columns=["type", "right", "share [95% interval]"], rows=rows)
    if each.strands:
        counts = [("plain facts", each.within, each.beyond), *((strand.name, strand.within, strand.beyond) for strand in each.strands)]
        split = any(beyond.asked for _, _, beyond in counts)
        where = "up to the reach" if each.reach else "up to the drop"
        rows = [[name, within.text, *([beyond.text] if split else [])] for name, within, beyond in counts]
        yield Table(title="By kind of question", columns=["questions", *([where, "beyond it"] if split else ["right"])], rows=rows)
    if each.outcomes:
        ordered = sorted(each.outcomes.items(), key=lambda item: -item[1])
        rows = [[OUTCOMES.get(name, name), str(number)] for name, number in ordered]
        yield Table(title="Wrong answers settled on", columns=["value", "answers"], rows=rows)


def _show(share: Extent) -> str:
    return f"{format_percent(share.value or 0)} [{format_percent(share.low or 0)}, {format_percent(share.high or 0)}]"
