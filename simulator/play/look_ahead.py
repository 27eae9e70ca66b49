"""The look-ahead: decides whether all remaining segments can meet their deadlines. Positions and costs are in charged tokens."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import NamedTuple, final

__all__ = ["Job", "can_schedule", "plays_out", "urgent_first"]


@final
class Job(NamedTuple):
    """A segment that remains to be said. It must not start before `release`, nor before `gap` tokens after the previous segment. It takes
    `cost` tokens and must be finished by `deadline`."""

    release: float
    deadline: float
    cost: float
    gap: float = 0


def plays_out(position: float, chains: Iterable[Sequence[Job]], *, first: bool = False) -> bool:
    """Return whether some order of the jobs meets every deadline, by simulating them.

    A chain has the jobs of one test in order. Segments are never split. The next one is always the most urgent released segment that leaves
    room for the rest. `first`: the last chain's first segment comes before all others.

    This is a heuristic: it may miss an order that would meet the deadlines.
    """
    left = [list(chain) for chain in chains if chain]
    if _any_order(position, left):
        return True
    jobs = sorted(job for chain in left for job in chain)
    if not can_schedule(position, jobs):
        return False
    ahead = [left[-1][0]] if first else _release_jobs(left, position)
    while left:
        if not first and urgent_first(position, left):
            return True
        for chosen in ahead:
            others = [job for job in jobs if job is not chosen]
            if can_schedule(position + chosen.cost, others):
                break
        else:
            later = [chain[0].release for chain in left if chain[0].release > position]
            if first or not later:
                return False
            position = min(later)
            ahead = _release_jobs(left, position)
            continue
        position = max(position, chosen.release) + chosen.cost
        if position > chosen.deadline:
            return False
        number = next(number for number, chain in enumerate(left) if chain[0] is chosen)
        jobs, left[number] = others, left[number][1:]
        if not left[number]:
            del left[number]
        elif (after := left[number][0]).release < (release := position + after.gap):
            left[number][0] = after._replace(release=release)
            jobs = sorted(left[number][0] if job is after else job for job in others)
        ahead, first = _release_jobs(left, position), False
    return True


def _any_order(position: float, chains: Sequence[Sequence[Job]]) -> bool:
    """Return whether no job can be late even if it waits for all other jobs."""
    total = sum(job.cost for chain in chains for job in chain)
    for chain in chains:
        end = position
        for job in chain:
            end = max(position, job.release, end + job.gap if job.gap else 0) + total
            if end > job.deadline:
                return False
    return True


def urgent_first(position: float, chains: Sequence[Sequence[Job]]) -> bool:
    """Return whether every deadline is met, with a token to spare, if the most urgent released segment always comes next.

    Each chosen segment then leaves room for the rest, because the rest is in time. So this is a much faster way than calling `can_schedule`
    for each one. The spare token covers rounding errors: `can_schedule` adds in another order.
    """
    heads = [(chain[0].release, chain, 0) for chain in chains]
    while heads:
        chosen, least = -1, 0.0
        for number, (release, chain, at) in enumerate(heads):
            if release <= position:
                latest = chain[at].deadline - chain[at].cost
                if chosen < 0 or latest < least:
                    chosen, least = number, latest
        if chosen < 0:
            position = min(release for release, _, _ in heads)
            continue
        _, chain, at = heads[chosen]
        position += chain[at].cost
        if position + 1 > chain[at].deadline:
            return False
        if at + 1 < len(chain):
            after = chain[at + 1]
            heads[chosen] = max(after.release, position + after.gap), chain, at + 1
        else:
            del heads[chosen]
    return True


def _release_jobs(chains: Iterable[Sequence[Job]], position: float) -> list[Job]:
    """Return the chains' next jobs that may start at `position`, least slack first."""
    return sorted((chain[0] for chain in chains if chain[0].release <= position), key=lambda job: job.deadline - job.cost)


def can_schedule(position: float, jobs: Sequence[Job]) -> bool:
    """Return whether all jobs, sorted by release, could meet their deadlines from `position` on if segments could be split.

    The earliest deadline goes first, which is optimal in that case. If the jobs do not fit even then, no order of whole segments will.
    """
    waiting: list[tuple[float, float]] = []  # a heap of (deadline, remaining cost)
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
