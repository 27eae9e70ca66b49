"""The names of everything installed: suites, and the scenarios and kinds of agent registered as entry points. Nothing is loaded."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final

__all__ = ["AGENTS", "MEMORIES", "SCENARIOS", "installed", "suites"]

SCENARIOS: Final = "longspan.scenarios"
"""The entry-point group where distributions register scenario classes by name."""

AGENTS: Final = "longspan.agents"
"""The entry-point group where distributions register kinds of agent: a name and a class."""

MEMORIES: Final = "longspan.memories"
"""The entry-point group where distributions register memories: a name and a class, whose arguments are its target and its options."""

SUITES: Final = Path(__file__).parents[1] / "suites"


def installed(group: str) -> dict[str, list[EntryPoint]]:
    """Return a group's entry points by name. A name registered by several distributions has several entries."""
    points: dict[str, list[EntryPoint]] = {}
    for point in _points(entry_points, group, tuple(sys.path)):
        points.setdefault(point.name, []).append(point)
    return points


@lru_cache(maxsize=32)
def _points(find: Callable[[], Any], group: str, path: tuple[str, ...]) -> list[EntryPoint]:
    """Return a group's entry points, sorted by name."""
    return sorted(_all_points(find, path).select(group=group), key=lambda point: point.name)


@lru_cache(maxsize=32)
def _all_points(find: Callable[[], Any], path: tuple[str, ...]) -> Any:
    """Return the entry points of all groups. They are cached for each path, because `find` reads every distribution on it."""
    return find()


def suites() -> dict[str, Path]:
    """Return the paths of the suites that come with longspan, by name."""
    return {path.stem: path for path in sorted(SUITES.glob("*.yaml"))}
