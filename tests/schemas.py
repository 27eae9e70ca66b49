"""The schemas of what commands print as JSON."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jsonschema
from jsonschema.protocols import Validator

from longspan.simulator.cli.schema import find_schema

__all__ = ["check_output"]


@cache
def validator(command: str) -> Validator:
    return jsonschema.Draft202012Validator(find_schema(command))


def check_output(command: str, printed: str) -> Any:
    """Return the JSON value that a command printed. Fails if it is not the only one, or not as the command's schema says."""
    value = json.loads(printed)
    validator(command).validate(value)
    return value
