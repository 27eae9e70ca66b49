"""Commands of a single benchmark: `longspan BENCHMARK COMMAND`. Packages register them by entry point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from longspan.simulator.base.installed import find_entry_points
from longspan.simulator.cli.reproduce import bind_reproduce
from longspan.simulator.cli.write import bind_write

__all__ = ["command_groups", "commands_of", "describe_commands", "locate_command", "name_commands", "name_moved"]

COMMANDS: Final = "longspan.commands"
"""The entry-point group of commands. It maps `BENCHMARK.COMMAND` to a function that Typer can call."""

GENERAL: Final[dict[str, tuple[str, Callable[[str], Callable[..., int]]]]] = {
    "reproduce": ("longspan.papers", bind_reproduce),
    "write": ("longspan.writers", bind_write),
}
"""Commands of every benchmark that registers an entry point in a certain group: by name, the group and the function that makes the
command."""


def command_groups() -> list[str]:
    """Return the names of the benchmarks that have commands. Loads nothing."""
    own = {name.partition(".")[0] for name in find_entry_points(COMMANDS)}
    return sorted(own.union(*(find_entry_points(group) for group, _ in GENERAL.values())))


def name_commands(benchmark: str) -> list[str]:
    """Return the names of a benchmark's commands. Loads nothing."""
    own = {command for name in find_entry_points(COMMANDS) for home, _, command in [name.partition(".")] if home == benchmark}
    return sorted(own.union(command for command, (group, _) in GENERAL.items() if benchmark in find_entry_points(group)))


def describe_commands(benchmark: str) -> str:
    """Return a benchmark's help text."""
    return f"Commands of {benchmark}: {', '.join(name_commands(benchmark))}."


def commands_of(benchmark: str) -> dict[str, Callable[..., Any]]:
    """Load a benchmark's commands, by name. Raises InputError if one cannot be loaded."""
    from longspan.simulator.contract.plugins import load_plugin

    commands: dict[str, Callable[..., Any]] = {}
    for name in name_commands(benchmark):
        full = f"{benchmark}.{name}"
        commands[name] = load_plugin(COMMANDS, "command", full) if full in find_entry_points(COMMANDS) else GENERAL[name][1](benchmark)
    return commands


def locate_command(benchmark: str, command: str) -> Path | None:
    """Return the file of the module that a benchmark's own command is in. None for a command that all benchmarks may have."""
    points = find_entry_points(COMMANDS).get(f"{benchmark}.{command}", [])
    with suppress(ImportError, ValueError):
        if points and (found := find_spec(points[0].module)) is not None and found.origin is not None:
            return Path(found.origin)
    return None


def name_moved(given: Sequence[str]) -> str | None:
    """Return where a command is now that was once a command of longspan itself, or None if no benchmark has such a command.

    If the name of a benchmark follows the command, as it once did, only that benchmark's command is named.
    """
    command, *others = given or [""]
    homes = [benchmark for benchmark in command_groups() if command in name_commands(benchmark)]
    if not homes:
        return None
    (home, *more) = [name for name in homes if name in others[:1]] or homes
    if more:
        return f"{command} is a command of benchmarks: `longspan BENCHMARK {command}`, where BENCHMARK is {' or '.join(homes)}"
    return f"{command} is a command of a benchmark: `longspan {home} {command}`"
