"""Keys in the environment, which are never written."""

from __future__ import annotations

import os
import re
from typing import Final

__all__ = ["redacted"]

NAMES: Final = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD)S?$", re.IGNORECASE)
"""Names of environment variables that hold keys."""

MIN_LENGTH: Final = 8
"""The minimum length of a key that is redacted. A shorter one could match ordinary text."""


def redacted(text: str) -> str:
    """Return a text with the names of environment variables that hold keys instead of their values."""
    for name, value in os.environ.items():
        if len(key := value.strip()) >= MIN_LENGTH and key in text and NAMES.search(name):
            text = text.replace(key, f"[{name}]")
    return text
