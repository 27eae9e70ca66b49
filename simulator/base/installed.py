"""The names of installed plugins (scenarios, agents and memories, registered as entry points) and of suites. Nothing is loaded."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator
from configparser import ConfigParser, Error
from functools import lru_cache
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any, Final, NamedTuple

__all__ = ["AGENTS", "MEMORIES", "SCENARIOS", "EntryPoint", "find_entry_points", "installed_suites"]

SCENARIOS: Final = "longspan.scenarios"
"""The entry-point group for scenarios. An entry point maps a name to a class."""

AGENTS: Final = "longspan.agents"
"""The entry-point group for kinds of agent. An entry point maps a name to a class."""

MEMORIES: Final = "longspan.memories"
"""The entry-point group for memories. An entry point maps a name to a class, which is called with its target and its options."""

SUITES: Final = Path(__file__).parents[1] / "suites"


class EntryPoint(NamedTuple):
    """What a package has registered: a name in a group, the object (`module:attribute`), and the package's name."""

    group: str
    name: str
    value: str
    package: str

    @property
    def module(self) -> str:
        """The module's name."""
        return self.value.partition(":")[0].strip()

    def load(self) -> Any:
        """Import the object."""
        return pkgutil.resolve_name(self.value.partition("[")[0].strip())


def find_entry_points(group: str) -> dict[str, list[EntryPoint]]:
    """Return a group's entry points by name, sorted. A name that several distributions register has several entries."""
    points: dict[str, list[EntryPoint]] = {}
    for point in _all_points(distributions, tuple(sys.path)):
        if point.group == group:
            points.setdefault(point.name, []).append(point)
    return points


@lru_cache(maxsize=32)
def _all_points(find: Callable[[], Iterable[Distribution]], path: tuple[str, ...]) -> list[EntryPoint]:
    """Return longspan's groups, sorted by name. Cached by path, because every distribution on it is read.

    `importlib.metadata.entry_points` would read all groups, and one wrong line of any package makes it fail if `importlib_metadata` has
    been imported. A package that is found twice counts where it is found first, as it does there.
    """
    found: dict[str, list[EntryPoint]] = {}
    for distribution in find():
        try:
            text = distribution.read_text("entry_points.txt") or ""
            if "[longspan." in text:
                name = distribution.metadata["Name"] or "?"
                found.setdefault(name.lower(), list(_parse_points(text, name)))
        except (OSError, ValueError, KeyError, Error):  # another package is damaged
            continue
    return sorted((point for points in found.values() for point in points), key=lambda point: point.name)


def _parse_points(text: str, package: str) -> Iterator[EntryPoint]:
    parser = ConfigParser(delimiters="=", interpolation=None, strict=False, default_section="")
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    parser.read_string(text)
    for group in parser.sections():
        yield from (EntryPoint(group, name, value, package) for name, value in parser.items(group))


def installed_suites() -> dict[str, Path]:
    """Return the paths of longspan's own suites by name."""
    return {path.stem: path for path in sorted(SUITES.glob("*.yaml"))}
