"""longspan list schema: print the schema of what commands print as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from longspan.simulator.cli import completion

__all__ = ["find_schema", "locate_schemas", "schema"]

FILE: Final = Path(__file__).parents[1] / "data" / "output.schema.json"
"""The schemas of longspan's own commands, in one document that is itself the schema of result.json."""

BESIDE: Final = "output.schema.json"
"""The file beside the module of a benchmark's command that has the schemas of its output, by the commands' names."""

MAX_BYTES: Final = 1 << 24


def schema(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A command with --json, such as run or list-runs.",
            metavar="COMMAND",
            show_default="result.json",
            autocompletion=lambda incomplete: completion.offer(locate_schemas(), incomplete),
        ),
    ] = None,
) -> None:
    """Print the JSON Schema of what a command prints with --json, or of result.json."""
    from longspan.simulator.base.terminal import say_json

    say_json(_read(FILE) if name is None else find_schema(name))


def find_schema(name: str) -> dict[str, Any]:
    """Return the schema of a command's output. `name` is the command's words joined by hyphens. Raises InputError for an unknown name."""
    from longspan.simulator.base.errors import InputError
    from longspan.simulator.base.suggestions import suggest

    known = locate_schemas()
    if name not in known:
        raise InputError(f"schema {name!r:.60}: no command prints JSON by that name{suggest(name, known)}")
    path, definition = known[name]
    document = _read(path)
    return document | {"$id": f"{document['$id']}:{definition}", "$ref": f"#/$defs/{definition}"}


def locate_schemas() -> dict[str, tuple[Path, str]]:
    """Return where every command's schema is, by the command's words joined by hyphens: the file, and the definition in it."""
    from longspan.simulator.cli.suite_commands import command_groups, locate_command, name_commands

    found = {name: (FILE, name) for name in _definitions(FILE)}
    for benchmark in command_groups():
        for command in name_commands(benchmark):
            module = locate_command(benchmark, command)
            path = FILE if module is None else module.with_name(BESIDE)
            if command in _definitions(path):
                found[f"{benchmark}-{command}"] = path, command
    return found


def _definitions(path: Path) -> list[str]:
    """Return the names of the commands that a document has schemas for. Names of types begin with capitals."""
    return [name for name in _read(path)["$defs"] if name[0].islower()] if path.exists() else []


def _read(path: Path) -> dict[str, Any]:
    from longspan.simulator.base.files.file_io import parse_json
    from longspan.simulator.base.files.folders import read_file

    document: dict[str, Any] = parse_json(read_file(path, MAX_BYTES), str(path))
    return document
