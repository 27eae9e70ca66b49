"""List the names that users depend on: what `longspan` exports, entry points, commands and options, JSON keys, fields of public classes.

python -m scripts.what_stays tests/what_stays.json

tests/test_what_stays.py fails if a name in the file is gone. Write the file again only after adding names, or when a name goes on purpose.
"""

from __future__ import annotations

import json
import sys
import tomllib
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Final

import typer.main

import longspan
from longspan.simulator.cli import whole_app
from longspan.simulator.cli.schema import find_schema, locate_schemas
from longspan.simulator.journal import events

ROOT: Final = Path(__file__).parents[1]

CLASSES: Final = ("Grade", "Memory", "Message", "Record", "Reply", "Scenario")


def find_names() -> dict[str, Any]:
    """Return all names, by what they are names of."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return {
        "longspan": longspan.__all__,
        "entry points": {group: sorted(points) for group, points in project["entry-points"].items()},
        "commands": _commands(),
        "json": _keys(),
        "journal": {str(event.model_fields["type"].default): list(event.model_fields) for event in _events()},
        "classes": {name: _members(getattr(longspan, name)) for name in CLASSES},
    }


def _commands() -> dict[str, list[str]]:
    """Return the long options of each command, by the command's words."""
    found: dict[str, list[str]] = {}
    root: Any = typer.main.get_command(whole_app())
    for name, group in root.commands.items():
        for inner, command in getattr(group, "commands", {"": group}).items():
            options = {option for param in command.params for option in (*param.opts, *param.secondary_opts) if option.startswith("--")}
            found[f"{name} {inner}".strip()] = sorted(options)
    return found


def _keys() -> dict[str, list[str]]:
    """Return the keys of the JSON objects that commands print or write, by their types."""
    found: dict[str, list[str]] = {}
    for name in locate_schemas():
        for kind, definition in find_schema(name)["$defs"].items():
            if "properties" in definition:
                found[kind] = sorted(definition["properties"])
    return dict(sorted(found.items()))


def _events() -> list[Any]:
    kinds = (getattr(events, name) for name in events.__all__)
    return [kind for kind in kinds if isinstance(kind, type) and "type" in getattr(kind, "model_fields", {})]


def _members(cls: type) -> list[str]:
    """Return the public fields and methods that a class defines itself."""
    own = {each.name for each in fields(cls)} if is_dataclass(cls) else set(getattr(cls, "model_fields", ()))
    return sorted(own | {name for name in vars(cls) if not name.startswith("_")})


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(find_names(), indent=1, default=list) + "\n", "utf-8")
