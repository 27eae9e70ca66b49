"""The digest that identifies recorded material: see `Script.recorded`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

__all__ = ["hash_texts"]


def hash_texts(texts: Iterable[str]) -> str:
    """Return a SHA-256, in hexadecimal, that is the same for the same texts in the same order, and for no others."""
    whole = hashlib.sha256()
    for text in texts:
        content = text.encode("utf-8", "replace")
        # The length keeps ["ab", "c"] and ["a", "bc"] apart.
        whole.update(b"%d:" % len(content) + content)
    return whole.hexdigest()
