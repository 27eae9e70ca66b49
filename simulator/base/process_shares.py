"""Limits shared by the processes that play the runs of a sweep (see `sweeps.processes`)."""

from __future__ import annotations

import os
from math import inf
from typing import Final

__all__ = ["PROCESSES", "process_share"]

PROCESSES: Final = "LONGSPAN_PROCESSES"
"""The environment variable for the number of processes that share a worker's limits."""


def process_share(limit: float | None) -> float:
    """Return this process's share of a limit, at least 1. Without a limit (None), return inf."""
    return inf if limit is None else max(1, limit // int(os.environ.get(PROCESSES, "1")))
