"""Differences between agents as a forest plot: a line for each pair, with its interval and its verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Final, NamedTuple, final

from longspan.simulator.base.shares import format_percent
from longspan.simulator.pages.report.contrast_words import describe_place, percent_of_marks
from longspan.simulator.results.analysis.contrasts import ContrastResult, Verdict
from longspan.simulator.results.analysis.pairs import Pair
from longspan.simulator.results.measures.comparing import Comparison
from longspan.simulator.results.measures.group_tables import one_line
from longspan.simulator.results.measures.pair_tables import p_text

__all__ = ["Forest", "Line", "draw_forest", "forests_by_baseline"]

MAX_AGENTS: Final = 12
"""The maximum number of agents that can be chosen as a baseline."""

SHOWN: Final[Mapping[Verdict, str]] = {"higher": "higher", "lower": "lower", "not shown": "no difference shown", "undecided": "too few"}
"""The badge of a verdict on the first agent."""


@final
class Line(NamedTuple):
    """A difference. `at`, `low`, `high` and `margin` are positions on the axis from 0 to 1, or None."""

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
    """Lines on a common axis, which extends from `-limit` to `limit`, in percent of full marks."""

    lines: Sequence[Line]
    limit: int


def draw_forest(tested: Sequence[ContrastResult]) -> Forest:
    """Return the forest plot of contrasts."""
    limit = _limit(end for each in tested for end in (each.difference or 0.0, each.contrast.margin, *(each.interval or ())))
    return Forest(list(_lines(tested, limit)), limit)


def forests_by_baseline(comparison: Comparison) -> Mapping[str, Forest]:
    """Return the differences of the other agents from each possible baseline, from `SideBySide.against`.

    With too many agents, only the baseline that the user named has differences.
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
        difference=format_percent(pair.difference, sign=True),
        interval="" if low is None or high is None else f"{format_percent(low, sign=True)}, {format_percent(high, sign=True)}",
        p=p,
        verdict="higher" if pair.verdict == "better" else "lower" if pair.verdict == "worse" else "not shown",
        badge=pair.verdict,
    )


def _limit(ends: Iterable[float]) -> int:
    """Return the end of an axis that includes all of these values: a round number of percent."""
    return min(100, max(10, 10 * ceil(10 * max(map(abs, ends), default=0.0) - 1e-9)))


def _lines(tested: Iterable[ContrastResult], limit: int) -> Iterable[Line]:
    for each in tested:
        one, other = map(one_line, each.contrast.agents)
        low, high = (None, None) if each.interval is None else each.interval
        yield Line(
            agent=one,
            other=other,
            where=describe_place(each.contrast),
            at=_place(each.difference, limit),
            low=_place(low, limit),
            high=_place(high, limit),
            margin=_place(each.contrast.margin, limit) if each.contrast.margin else None,
            difference="" if each.difference is None else percent_of_marks(each.difference, sign=True),
            interval="" if low is None or high is None else f"{percent_of_marks(low, sign=True)} to {percent_of_marks(high, sign=True)}",
            p="",
            verdict=each.verdict,
            badge=_badge(each),
        )


def _badge(each: ContrastResult) -> str:
    """Describe the verdict on the first agent in a few words."""
    if each.contrast.sides == 2 or each.verdict == "undecided":
        return SHOWN[each.verdict]
    if each.verdict == "not shown":
        return "not shown"
    return "higher" if each.contrast.margin >= 0 else "not worse"


def _place(share: float | None, limit: int) -> float | None:
    return None if share is None else min(1.0, max(0.0, 0.5 + 50 * share / limit))
