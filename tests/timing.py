"""How the time of some work grows with its size. Processor time of one process is compared, never seconds with a limit."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

__all__ = ["cpu_seconds", "growth"]


def cpu_seconds(work: Callable[[], object], repeats: int = 1) -> float:
    """Return the processor seconds that some work takes, the best of some repeats, without the collector of garbage.

    Its share depends on what else this process holds in memory.
    """
    best = float("inf")
    gc.disable()
    try:
        for _ in range(repeats):
            began = time.process_time()
            work()
            best = min(best, time.process_time() - began)
    finally:
        gc.enable()
    return best


def growth(work: Callable[[int], object], size: int, times: int = 10) -> float:
    """Return how many times as long work of `times` the size takes. Work that takes less than 5 ms counts as 5 ms.

    What takes much longer than it should is measured again: other work on the machine only adds time.
    """
    small = max(cpu_seconds(lambda: work(size), repeats=2), 0.005)
    large = cpu_seconds(lambda: work(times * size))
    if large > 2 * times * small:
        large = min(large, cpu_seconds(lambda: work(times * size)))
    return large / small
