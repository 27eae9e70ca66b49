"""The frozen lists that scenarios draw from: names, colours, jokes and the like."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["load_words"]

DATA = Path(__file__).parent / "data"


@cache
def load_words(name: str) -> Any:
    """Return the list in `data/<name>.json`. Changing a list changes the tests that a seed makes, so it needs a new version."""
    return json.loads((DATA / f"{name}.json").read_text("utf-8"))
