"""Differences of agents as a forest plot: a line for each pair with its interval and what is shown of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Final, NamedTuple, final

from longspan.simulator.analysis.contrasts import Tested, Verdict
from longspan.simulator.analysis.pairs import Pair
from longspan.simulator.base.shares import percent
from longspan.simulator.measures.comparing import Comparison
from longspan.simulator.measures.group_tables import one_line
from longspan.simulator.measures.pair_tables import p_text
from longspan.simulator.report.contrasts import percent as tenths
from longspan.simulator.report.contrasts import where

__all__ = ["Forest", "Line", "against", "drawn"]

MAX_AGENTS: Final = 12
"""The most agents of which each can be a baseline."""

SHOWN: Final[Mapping[Verdict, str]] = {"higher": "higher", "lower": "lower", "not shown": "no difference shown", "undecided": "too few"}
"""What a badge says of the first agent."""


@final
class Line(NamedTuple):
    """A difference. `at`, `low`, `high` and `margin` are places on the axis, from 0 to 1; None where there is none."""

    agent: str
    other: str
    where: str
    at: float | None
    low: float | None
    high: float | None
    margin: float | None
    difference: str
    interval: str
    p: str
    verdict: Verdict
    badge: str


@final
class Forest(NamedTuple):
    """Lines on one axis, which reaches from `-limit` to `limit`, in percent of full marks."""

    lines: Sequence[Line]
    limit: int


def drawn(tested: Sequence[Tested]) -> Forest:
    """Return the forest plot of contrasts."""
    limit = _limit(end for each in tested for end in (each.difference or 0.0, each.contrast.margin, *(each.interval or ())))
    return Forest(list(_lines(tested, limit)), limit)


def against(comparison: Comparison) -> Mapping[str, Forest]:
    """Return the differences of the other agents from each possible baseline, as `SideBySide.against` makes them.

    With too many agents, only a baseline that was named has any.
    """
    side = comparison.side
    agents = side.agents if side.by_recall else side.answering
    if len(agents) > MAX_AGENTS:
        agents = [agent for agent in agents if agent == side.baseline]
    found = {baseline: side.against(baseline) for baseline in agents}
    limit = _limit(end for pairs in found.values() for pair in pairs for end in (pair.difference, *(pair.interval or ())))
    return {baseline: Forest([_line(pair, limit) for pair in pairs], limit) for baseline, pairs in found.items() if pairs}


def _line(pair: Pair, limit: int) -> Line:
    low, high = pair.interval or (None, None)
    p = f"p (Holm) {p_text(pair.corrected)}" if pair.p_of_tests is None else f"p of these {pair.counted} {p_text(pair.p_of_tests)}"
    return Line(
        agent=one_line(pair.agent),
        other=one_line(pair.other),
        where=str(pair.column),
        at=_place(pair.difference, limit),
        low=_place(low, limit),
        high=_place(high, limit),
        margin=None,
        difference=percent(pair.difference, sign=True),
        interval="" if low is None or high is None else f"{percent(low, sign=True)}, {percent(high, sign=True)}",
        p=p,
        verdict="higher" if pair.verdict == "better" else "lower" if pair.verdict == "worse" else "not shown",
        badge=pair.verdict,
    )


def _limit(ends: Iterable[float]) -> int:
    """Return the end of an axis that holds all of these places: a round number of percent."""
    return min(100, max(10, 10 * ceil(10 * max(map(abs, ends), default=0.0) - 1e-9)))


def _lines(tested: Iterable[Tested], limit: int) -> Iterable[Line]:
    for each in tested:
        one, other = map(one_line, each.contrast.agents)
        low, high = (None, None) if each.interval is None else each.interval
        yield Line(
            agent=one,
            other=other,
            where=where(each.contrast),
            at=_place(each.difference, limit),
            low=_place(low, limit),
            high=_place(high, limit),
            margin=_place(each.contrast.margin, limit) if each.contrast.margin else None,
            difference="" if each.difference is None else tenths(each.difference, sign=True),
            interval="" if low is None or high is None else f"{tenths(low, sign=True)} to {tenths(high, sign=True)}",
            p="",
            verdict=each.verdict,
            badge=_badge(each),
        )


def _badge(each: Tested) -> str:
    """Say in few words what is shown of the first agent."""
    if each.contrast.sides == 2 or each.verdict == "undecided":
        return SHOWN[each.verdict]
    if each.verdict == "not shown":
        return "not shown"
    return "higher" if each.contrast.margin >= 0 else "not worse"


def _place(share: float | None, limit: int) -> float | None:
    return None if share is None else min(1.0, max(0.0, 0.5 + 50 * share / limit))
