"""Score how well a reply orders events, following the authors' procedure for BEAM's event ordering (Tavakoli et al., 2025).

Each line of the reply is matched with the first reference event that it describes and that no earlier line was matched with. Kendall's
tau-b compares the two orders. Events missing from one of them share its last rank. tau is scaled to [0, 1], so that a random order
scores 0.5 if nothing is missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import isnan, nan
from typing import Final, NamedTuple, final

from longspan.simulator.base.words import plain

__all__ = ["LINES", "Alignment", "Ordering", "align_events", "lines_of", "score_order"]

LINES: Final = 60
"""Number of a reply's lines that are compared with the reference. Later lines match no event, which bounds the queries to a judge."""

_MARK: Final = re.compile(r"\s*(?:[-*•#]+\s*)*(?:\(?\d{1,3}[.):]\s*)?")


@final
class Alignment(NamedTuple):
    """The event matched with each line of a reply, or None, and the (line, event) pairs that a judge must still compare."""

    events: list[int | None]
    unknown: list[tuple[int, int]]


@final
class Ordering(NamedTuple):
    """Kendall's tau scaled to [0, 1], and the F1 of the events named."""

    tau: float
    f1: float


def lines_of(reply: str) -> list[str]:
    """Return a reply's lines that contain words. Unlike this function, the authors' program counts empty lines as events."""
    return [line.strip() for line in reply.splitlines() if plain(line)]


def align_events(lines: Sequence[str], events: Sequence[str], same: Callable[[int, int], bool | None]) -> Alignment:
    """Match lines with events. `same(line, event)` returns whether they describe the same event, or None if it is not known yet.

    While a pair is unknown, later lines are matched as if its line matched nothing.
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
    return Alignment(found, unknown)


def score_order(aligned: Sequence[int | None], count: int) -> Ordering:
    """Return how well matched lines order `count` events. `count` must be at least 1."""
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
    """Return Kendall's tau-b. Where it is undefined because nothing can be ordered, return 1 for identical sequences and -1 otherwise."""
    from scipy.stats import kendalltau

    value = float(kendalltau(left, right, variant="b").statistic) if len(left) > 1 else nan
    return value if not isnan(value) else 1.0 if left == right else -1.0
