"""Commands of a single benchmark: `longspan BENCHMARK COMMAND`. Packages register them by entry point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from longspan.simulator.base.installed import installed
from longspan.simulator.cli.reproduce import bind_reproduce
from longspan.simulator.cli.write import bind_write

__all__ = ["benchmarks", "commands_of", "describe_commands", "name_commands", "name_moved"]

COMMANDS: Final = "longspan.commands"
"""The entry-point group of commands. It maps `BENCHMARK.COMMAND` to a function that Typer can call."""

GENERAL: Final[dict[str, tuple[str, Callable[[str], Callable[..., int]]]]] = {
    "reproduce": ("longspan.papers", bind_reproduce),
    "write": ("longspan.writers", bind_write),
}
"""Commands of every benchmark that registers an entry point in a certain group: by name, the group and the function that makes the
command."""


def benchmarks() -> list[str]:
    """Return the names of the benchmarks that have commands. Loads nothing."""
    own = {name.partition(".")[0] for name in installed(COMMANDS)}
    return sorted(own.union(*(installed(group) for group, _ in GENERAL.values())))


def name_commands(benchmark: str) -> list[str]:
    """Return the names of a benchmark's commands. Loads nothing."""
    own = {command for name in installed(COMMANDS) for home, _, command in [name.partition(".")] if home == benchmark}
    return sorted(own.union(command for command, (group, _) in GENERAL.items() if benchmark in installed(group)))


def describe_commands(benchmark: str) -> str:
    """Return a benchmark's help text."""
    return f"Commands of {benchmark}: {', '.join(name_commands(benchmark))}."


def commands_of(benchmark: str) -> dict[str, Callable[..., Any]]:
    """Load a benchmark's commands, by name. Raises InputError if one cannot be loaded."""
    from longspan.simulator.contract.plugins import load

    commands: dict[str, Callable[..., Any]] = {}
    for name in name_commands(benchmark):
        full = f"{benchmark}.{name}"
        commands[name] = load(COMMANDS, "command", full) if full in installed(COMMANDS) else GENERAL[name][1](benchmark)
    return commands


def name_moved(command: str) -> str | None:
    """Return where a former command of longspan has moved to, or None if no benchmark has such a command."""
    found = [f"`longspan {benchmark} {command}`" for benchmark in benchmarks() if command in name_commands(benchmark)]
    return f"{command} is a command of a benchmark: {' or '.join(found)}" if found else None
