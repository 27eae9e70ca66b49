"""Plays the unfinished runs of a sweep: in this process, in several, or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Sequence

import trio

from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.running.planning import Plan
from longspan.simulator.running.player import Listener, Outcome
from longspan.simulator.running.runner import play_runs, sum_spending
from longspan.simulator.running.scoring import Page
from longspan.simulator.running.sweeps.processes import play_in_processes
from longspan.simulator.subject.ledger import Ledger
from longspan.simulator.subject.spending_limit import NOTHING, UNLIMITED, Amount

__all__ = ["play_left"]


def play_left(
    left: list[tuple[Plan, RunFolder]],
    runs: Sequence[RunFolder],
    *,
    jobs: int | None,
    on_ray: bool,
    ships: bool,
    lock: int,
    limit: Amount,
    seconds: float,
    listener: Listener,
    pages: type[Page],
) -> list[Outcome]:
    """Play the unfinished ones of a sweep's `runs`: concurrently in this process, one at a time in each of `jobs` others, or on a cluster.

    The cluster gets the current folder if `ships`. The whole sweep spends at most `limit`, and is stopped after `seconds`. `lock` is the
    file descriptor of the sweep's lock.
    """
    spent, dearest = sum_spending(runs) if limit != UNLIMITED else (NOTHING, NOTHING)
    if on_ray:
        from longspan.simulator.running.sweeps.ray.driver import play_on_ray

        return play_on_ray(left, listener=listener, pages=pages, limit=limit, spent=spent, dearest=dearest, ships=ships)
    ledger = Ledger(limit, spent, dearest)
    if jobs is None:
        return trio.run(lambda: play_runs(left, ledger, listener=listener, pages=pages, signals=True, seconds=seconds))
    count = min(jobs, len(left))
    return trio.run(lambda: play_in_processes(left, count, lock=lock, ledger=ledger, listener=listener, pages=pages, seconds=seconds))
