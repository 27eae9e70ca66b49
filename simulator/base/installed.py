"""The names of installed plugins (scenarios, agents and memories, registered as entry points) and of suites. Nothing is loaded."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final

__all__ = ["AGENTS", "MEMORIES", "SCENARIOS", "find_entry_points", "installed_suites"]

SCENARIOS: Final = "longspan.scenarios"
"""The entry-point group for scenarios. An entry point maps a name to a class."""

AGENTS: Final = "longspan.agents"
"""The entry-point group for kinds of agent. An entry point maps a name to a class."""

MEMORIES: Final = "longspan.memories"
"""The entry-point group for memories. An entry point maps a name to a class, which is called with its target and its options."""

SUITES: Final = Path(__file__).parents[1] / "suites"


def find_entry_points(group: str) -> dict[str, list[EntryPoint]]:
    """Return a group's entry points by name. A name that several distributions register has several entries."""
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
    """Return the entry points of all groups. Cached by path, because `find` reads every distribution on it."""
    return find()


def installed_suites() -> dict[str, Path]:
    """Return the paths of longspan's own suites by name."""
    return {path.stem: path for path in sorted(SUITES.glob("*.yaml"))}
