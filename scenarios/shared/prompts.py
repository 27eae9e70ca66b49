"""Prompts of the user's own, for those who compare with published scores: a YAML file with texts that are played to the letter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from longspan.simulator.base import plain_yaml
from longspan.simulator.base.blame import is_fault
from longspan.simulator.base.errors import InputError
from longspan.simulator.files.reading import read_packed

__all__ = ["Places", "filled", "read_prompts"]

Places = Mapping[str, tuple[str, ...]]
"""The prompts that a file may have, by name, and the places of each: `{{name}}` stands for a value."""

LARGEST: Final = 1 << 20
"""Bytes of a file."""

_PLACE: Final = re.compile(r"\{\{ ?(\w+) ?\}\}")


def read_prompts(path: Path, places: Places, required: tuple[str, ...]) -> dict[str, str]:
    """Return the prompts of a file. Raises InputError for one that lacks a required prompt or has others, or other places."""
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
        return plain_yaml.load(content)
    except Exception as error:  # YAML errors, and whatever its constructors raise for invalid values
        if not is_fault(error):
            raise
        raise InputError(f"prompts {path}: not YAML: {plain_yaml.problem(error)}") from error


def filled(prompt: str, **values: object) -> str:
    """Return a prompt with its places filled. Values are never read as places themselves."""
    return _PLACE.sub(lambda place: str(values[place[1]]), prompt)
