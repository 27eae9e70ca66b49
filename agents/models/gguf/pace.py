"""The number of computing threads: all that are useful on an idle machine, fewer while other programs use the CPU.

Threads synchronise after each of the few hundred steps of a token. If one of them has no processor, all others wait for it. Two threads on
two processors therefore write half as fast as one alone as soon as another program runs. The pieces of a prompt are shared out dynamically:
a waiting thread costs little there, so all threads always compute.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, final

__all__ = ["Pace", "count_cores"]

HAD: Final = 0.7
"""If the threads' CPU time falls below this share of real time, they are waiting for processors. On an idle machine the share is about .85,
since threads sleep after waiting a while for the others.
"""

WINDOW: Final = 0.1
"""Seconds of computing per measurement."""

REST: Final = 0.5
LONGEST_REST: Final = 8.0
"""Initial and maximum seconds of computing before the number of threads is doubled again. Each failure doubles the seconds."""

TOLD_AFTER: Final = 10.0
"""Seconds of computing before the user may be warned about other programs."""

SIBLINGS: Final = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")


def count_cores() -> int:
    """Return how many processors this process may use. Hardware threads of a core count once, since they do not speed up matrices."""
    if not hasattr(os, "sched_getaffinity"):
        return max(1, (os.cpu_count() or 1) // 2)
    cores = {_read(Path(SIBLINGS.format(number))) or str(number) for number in os.sched_getaffinity(0)}
    quota, _, period = _read(QUOTA).partition(" ")
    limit = int(quota) // int(period) if quota.isdecimal() and period.isdecimal() and int(period) else len(cores)
    return max(1, min(len(cores), limit))


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except OSError:
        return ""


@final
class Pace:
    """The adaptive number of `threads` for an answer's tokens, at most `most`. Without `adapts`, it is always `most`."""

    def __init__(self, most: int, *, adapts: bool) -> None:
        self.most = self.threads = most
        self._adapts = adapts and most > 1
        self._wall = self._cpu = self._at_level = 0.0
        self._rest = REST
        self._all_wall = self._all_cpu = 0.0
        self._told = False

    def took(self, wall: float, cpu: float) -> None:
        """Record the real time of computing a token, and the CPU time of all threads."""
        self.took_prompt(wall, cpu)
        if not self._adapts:
            return
        self._wall, self._cpu, self._at_level = self._wall + wall, self._cpu + cpu, self._at_level + wall
        if self._wall < WINDOW:
            return
        waits = self._cpu < HAD * self.threads * self._wall
        self._wall = self._cpu = 0.0
        if self.threads > 1 and waits:
            self._change(max(1, self.threads // 2))
            self._rest = min(2 * self._rest, LONGEST_REST)
        elif self.threads < self.most and self._at_level >= self._rest:
            self._change(min(2 * self.threads, self.most))
        elif self.threads == self.most and self._at_level >= LONGEST_REST:
            self._rest = REST

    def took_prompt(self, wall: float, cpu: float) -> None:
        """Record the same for a part of a prompt."""
        self._all_wall, self._all_cpu = self._all_wall + wall, self._all_cpu + cpu

    def complaint(self) -> str | None:
        """Return a warning for the user, once, if other programs take the processors."""
        if self._told or self._all_wall < TOLD_AFTER:
            return None
        had, wall = self._all_cpu / self._all_wall, self._all_wall
        self._all_wall = self._all_cpu = 0.0  # later times are judged separately
        if had >= HAD * self.most:
            return None
        self._told = True
        wanted = f"{self.most} processors" if self.most > 1 else "1 processor"
        return f"other programs use the processors: of {wanted}, it had {had:.1f} in {wall:.0f} s of computing, and is slower for it"

    def _change(self, threads: int) -> None:
        self.threads, self._at_level = threads, 0.0
