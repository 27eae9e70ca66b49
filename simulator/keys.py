"""Keys in the environment, which are never written."""

from __future__ import annotations

import os
import re
from typing import Final

__all__ = ["MAX_LENGTH", "note_key", "redacted"]

NAMES: Final = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD)S?$", re.IGNORECASE)
"""Names of environment variables that hold keys."""

MIN_LENGTH: Final = 8
"""The minimum length of a key that is redacted. A shorter one could match ordinary text."""

MAX_LENGTH: Final = 4_096
"""The maximum length of a key that is redacted wherever a text is cut."""

_noted: Final[set[str]] = set()


def note_key(name: str) -> None:
    """Note that an environment variable holds a key, whatever its name."""
    _noted.add(name)


def redacted(text: str) -> str:
    """Return a text with the names of environment variables that hold keys instead of their values."""
    found = {
        key: name
        for name, value in os.environ.items()
        if len(key := value.strip()) >= MIN_LENGTH and key in text and (name in _noted or NAMES.search(name))
    }
    for key in sorted(found, key=len, reverse=True):  # one may begin with another
        text = text.replace(key, f"[{found[key]}]")
    return text
