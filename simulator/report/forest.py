"""Differences of agents as a forest plot: a line for each pair with its interval and what is shown of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import ceil
from typing import Final, NamedTuple, final

from longspan.simulator.analysis.comparable import other_data
from longspan.simulator.analysis.contrasts import Contrast, Contrasts, Tested, Verdict, evaluate
from longspan.simulator.measures.comparing import Comparison
from longspan.simulator.measures.group_tables import one_line
from longspan.simulator.report.contrasts import percent, where

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
    verdict: Verdict
    badge: str


@final
class Forest(NamedTuple):
    """Lines on one axis, which reaches from `-limit` to `limit`, in percent of full marks."""

    lines: Sequence[Line]
    limit: int


def drawn(tested: Sequence[Tested]) -> Forest:
    """Return the forest plot of contrasts."""
    return Forest(list(_lines(tested, limit := _limit(tested))), limit)


def against(comparison: Comparison) -> Mapping[str, Forest]:
    """Return for each agent the differences of all others from it, over all spans; none if there are too many agents, or none to compare.

    They are tested like contrasts, two-sided, and p-values are corrected for all pairs by Holm's method.
    """
    runs, agents = comparison.side.runs, list(comparison.side.answering)
    if not 1 < len(agents) <= MAX_AGENTS or other_data(runs):
        return {}
    family = Contrasts(contrasts=[Contrast(agents=[one, other]) for one, other in combinations(agents, 2)])
    tested = [each for each in evaluate(family, runs) if each.tests]
    limit = _limit(tested)
    found = {}
    for baseline in agents:
        own = [each for each in tested if baseline in each.contrast.agents]
        lines = list(_lines([each if each.contrast.agents[1] == baseline else _turned(each) for each in own], limit))
        if lines:
            found[baseline] = Forest(lines, limit)
    return found


def _turned(each: Tested) -> Tested:
    """Return a contrast with its agents the other way round."""
    verdict: Verdict = "lower" if each.verdict == "higher" else "higher" if each.verdict == "lower" else each.verdict
    one, other = each.contrast.agents
    return replace(
        each,
        contrast=each.contrast.model_copy(update={"agents": [other, one]}),
        one=each.other,
        other=each.one,
        difference=None if each.difference is None else -each.difference,
        interval=None if each.interval is None else (-each.interval[1], -each.interval[0]),
        verdict=verdict,
    )


def _limit(tested: Iterable[Tested]) -> int:
    """Return the end of an axis that holds all intervals: a round number of percent."""
    ends = [abs(end) for each in tested for end in (each.difference or 0.0, each.contrast.margin, *(each.interval or ()))]
    return min(100, max(10, 10 * ceil(10 * max(ends, default=0.0) - 1e-9)))


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
            difference="" if each.difference is None else percent(each.difference, sign=True),
            interval="" if low is None or high is None else f"{percent(low, sign=True)} to {percent(high, sign=True)}",
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
