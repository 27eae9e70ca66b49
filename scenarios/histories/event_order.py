"""How well a reply puts events in order: the authors' procedure for BEAM's event ordering (Tavakoli et al., 2025).

A line of the reply stands for the first event of the reference that it describes and that no earlier line stands for. Kendall's tau-b
compares the two orders; what only one of them has comes last in the other, all at the same rank. tau is scaled to [0, 1], so that
0.5 is what chance gives where nothing is missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import isnan, nan
from typing import Final, NamedTuple, final

from longspan.simulator.grading.matching import plain

__all__ = ["LINES", "Aligned", "Ordering", "align", "lines_of", "ordering"]

LINES: Final = 60
"""The lines of a reply that are compared with the reference: the first ones. Others are none of its events."""

_MARK: Final = re.compile(r"\s*(?:[-*•#]+\s*)*(?:\(?\d{1,3}[.):]\s*)?")


@final
class Aligned(NamedTuple):
    """For each line of a reply the number of the event that it stands for, or None; and the facts that must be known to say so."""

    events: list[int | None]
    unknown: list[tuple[int, int]]


@final
class Ordering(NamedTuple):
    """Kendall's tau in [0, 1], and the F1 of the events that are named."""

    tau: float
    f1: float


def lines_of(reply: str) -> list[str]:
    """Return the lines of a reply that have words. The authors' program counts empty lines as events, too."""
    return [line.strip() for line in reply.splitlines() if plain(line)]


def align(lines: Sequence[str], events: Sequence[str], same: Callable[[int, int], bool | None]) -> Aligned:
    """Align lines with events. `same(line, event)`: whether they describe the same, or None if that is to be found out.

    As long as something is unknown, later lines are aligned as if that line stood for nothing.
    """
    found: list[int | None] = []
    unknown: list[tuple[int, int]] = []
    for number, line in enumerate(lines):
        found.append(None)
        for event, text in enumerate(events if number < LINES else ()):
            if event in found:
                continue
            alike = True if plain(_MARK.sub("", line, count=1)) == plain(text) else same(number, event)
            if alike is None:
                unknown.append((number, event))
            if alike is not False:
                found[-1] = event if alike else None
                break
    return Aligned(found, unknown)


def ordering(aligned: Sequence[int | None], count: int) -> Ordering:
    """Return how well aligned lines put `count` events in order, at least one."""
    matched = [event for event in aligned if event is not None]
    strays = len(aligned) - len(matched)
    common = 2 * len(matched)
    f1 = common / (common + strays + count - len(matched)) if matched else 0.0
    last = count + strays + 1
    place = {event: rank for rank, event in enumerate(aligned, 1) if event is not None}
    theirs = [*range(1, count + 1), *([last] * strays)]
    ours = [place.get(event, last) for event in range(count)] + [rank for rank, event in enumerate(aligned, 1) if event is None]
    return Ordering((_tau(theirs, ours) + 1) / 2, f1)


def _tau(left: Sequence[int], right: Sequence[int]) -> float:
    """Return tau-b; where it is not defined, since there is nothing to order, 1 if all is named and nothing else, or else -1."""
    from scipy.stats import kendalltau

    value = float(kendalltau(left, right, variant="b").statistic) if len(left) > 1 else nan
    return value if not isnan(value) else 1.0 if left == right else -1.0
