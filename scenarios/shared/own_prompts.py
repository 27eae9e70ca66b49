"""User-supplied prompts for comparison with published scores: a YAML file of templates that are used verbatim."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from longspan.simulator.base import plain_yaml
from longspan.simulator.base.blame import is_fault
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.files.file_io import read_packed

__all__ = ["Places", "fill_prompt", "read_prompts"]

Places = Mapping[str, tuple[str, ...]]
"""The prompts that a file may define, by name, with the placeholders that each may use. `{{name}}` is replaced by a value."""

LARGEST: Final = 1 << 20
"""Maximum size of a prompts file in bytes."""

_PLACE: Final = re.compile(r"\{\{ ?(\w+) ?\}\}")


def read_prompts(path: Path, places: Places, required: tuple[str, ...]) -> dict[str, str]:
    """Read the prompts in a file. Raises InputError if a required prompt is missing or a prompt or placeholder is unknown."""
    content = _yaml(path)
    if not isinstance(content, dict) or not all(isinstance(text, str) for text in content.values()):
        raise InputError(f"prompts {path}: expected texts by name; the names are {', '.join(places)}")
    if other := [str(name) for name in content if name not in places]:
        raise InputError(f"prompts {path}: there is no prompt {other[0]!r:.60}; the names are {', '.join(places)}")
    if lacking := [name for name in required if name not in content]:
        raise InputError(f"prompts {path}: the prompt {lacking[0]} is missing; needed are {', '.join(required)}")
    for name, text in content.items():
        if unknown := [place for place in _PLACE.findall(text) if place not in places[name]]:
            known = ", ".join(f"{{{{{place}}}}}" for place in places[name]) or "none"
            raise InputError(f"prompts {path}: {name} has a place {{{{{unknown[0]}}}}} that nothing fills; its places are {known}")
    return dict(content)


def _yaml(path: Path) -> object:
    content = read_packed(path, LARGEST, "name a YAML file of prompts")
    try:
        return plain_yaml.load_yaml(content)
    except Exception as error:  # YAML errors, and errors of its constructors for invalid values
        if not is_fault(error):
            raise
        raise InputError(f"prompts {path}: not YAML: {plain_yaml.describe_yaml_error(error)}") from error


def fill_prompt(prompt: str, **values: object) -> str:
    """Return a prompt with its placeholders replaced. Placeholders inside values are left alone."""
    return _PLACE.sub(lambda place: str(values[place[1]]), prompt)
