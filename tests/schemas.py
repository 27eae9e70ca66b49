"""The schemas of what commands print as JSON."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
from jsonschema.protocols import Validator

from longspan.simulator.cli.schema import FILE

__all__ = ["DOCUMENT", "check_output"]

DOCUMENT: dict[str, Any] = json.loads(Path(FILE).read_text("utf-8"))


@cache
def validator(command: str) -> Validator:
    return jsonschema.Draft202012Validator(DOCUMENT | {"$ref": f"#/$defs/{command}"})


def check_output(command: str, printed: str) -> Any:
    """Return the JSON value that a command printed. Fails if it is not the only one, or not as the command's schema says."""
    value = json.loads(printed)
    validator(command).validate(value)
    return value
