"""The look-ahead: whether all that tests have still to say can be said in time. Positions and costs are in charged tokens."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import NamedTuple, final

__all__ = ["Job", "fits", "plays_out"]


@final
class Job(NamedTuple):
    """A segment still to be said: not before `release`, nor before `gap` has passed after the segment before, finished by `deadline`,
    taking `cost`."""

    release: float
    deadline: float
    cost: float
    gap: float = 0


def plays_out(position: float, chains: Iterable[Sequence[Job]], *, first: bool = False) -> bool:
    """Play out on paper what is still to be said: whether there is an order in which every job meets its deadline.

    A chain is what one test has still to say, in order. Whole segments are said one after another: of those that are released,
    the most urgent after which the rest still fits. `first`: the last chain's first segment comes before all others.
    """
    left = [list(chain) for chain in chains if chain]
    if _any_order(position, left):
        return True
    jobs = _by_release(left)
    if not fits(position, jobs):
        return False
    ahead = [left[-1][0]] if first else _released(left, position)
    while left:
        chosen = next((job for job in ahead if fits(position + job.cost, [other for other in jobs if other is not job])), None)
        if chosen is None:
            later = [chain[0].release for chain in left if chain[0].release > position]
            if first or not later:
                return False
            position = min(later)
        else:
            position = max(position, chosen.release) + chosen.cost
            if position > chosen.deadline:
                return False
            left = [rest for chain in left if (rest := _rest(chain, position) if chain[0] is chosen else chain)]
            jobs = _by_release(left)
        ahead, first = _released(left, position), False
    return True


def _any_order(position: float, chains: Sequence[Sequence[Job]]) -> bool:
    """Return whether no job can be late, since each could wait until all the others are said."""
    total = sum(job.cost for chain in chains for job in chain)
    for chain in chains:
        end = position
        for job in chain:
            end = max(position, job.release, end + job.gap if job.gap else 0) + total
            if end > job.deadline:
                return False
    return True


def _rest(chain: Sequence[Job], position: float) -> list[Job]:
    """Return what a chain has left to say when its first segment ends at `position`."""
    return [job._replace(release=max(job.release, position + job.gap)) if k == 0 else job for k, job in enumerate(chain[1:])]


def _released(chains: Iterable[Sequence[Job]], position: float) -> list[Job]:
    """Return the chains' next jobs that may start at `position`, least slack first."""
    return sorted((chain[0] for chain in chains if chain[0].release <= position), key=lambda job: job.deadline - job.cost)


def _by_release(chains: Iterable[Sequence[Job]]) -> list[Job]:
    return sorted(job for chain in chains for job in chain)


def fits(position: float, jobs: Sequence[Job]) -> bool:
    """Return whether all jobs, sorted by release, could meet their deadlines from `position` on if segments could be split.

    The earliest deadline goes first, which is best possible then. If they do not even fit so, no order of whole segments will do.
    """
    waiting: list[tuple[float, float]] = []  # a heap: deadlines, and what is left of the cost
    for release, deadline, cost, _ in jobs:
        while waiting and position < release:
            due, left = waiting[0]
            end = position + left
            if end > release:
                heapq.heapreplace(waiting, (due, end - release))
                position = release
            elif end > due:
                return False
            else:
                heapq.heappop(waiting)
                position = end
        position = max(position, release)
        heapq.heappush(waiting, (deadline, cost))
    for due, left in sorted(waiting):
        position += left
        if position > due:
            return False
    return True
