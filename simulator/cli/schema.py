"""longspan schema: print the schema of what commands print as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

__all__ = ["schema"]

FILE: Final = Path(__file__).parents[1] / "data" / "output.schema.json"
"""The schemas, in one document that is itself the schema of result.json."""

MAX_BYTES: Final = 1 << 24


def schema(
    name: Annotated[
        str | None, typer.Argument(help="A command with --json, such as run or list-runs.", metavar="COMMAND", show_default="result.json")
    ] = None,
) -> None:
    """Print the JSON Schema of what a command prints with --json, or of result.json."""
    from longspan.simulator.base.errors import InputError
    from longspan.simulator.base.suggestions import meant
    from longspan.simulator.base.terminal import say_json
    from longspan.simulator.files.folders import read_file
    from longspan.simulator.files.reading import parse_json

    document = parse_json(read_file(FILE, MAX_BYTES), str(FILE))
    if name is not None:
        commands = [each for each in document["$defs"] if each[0].islower()]
        if name not in commands:
            raise InputError(f"schema {name!r:.60}: no command prints JSON by that name{meant(name, commands)}")
        document |= {"$id": f"{document['$id']}:{name}", "$ref": f"#/$defs/{name}"}
    say_json(document)
