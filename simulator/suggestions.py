"""What somebody may have meant who wrote a name that does not exist."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["meant"]

ALIKE: Final = 0.7
"""The least share of letters that two names have in common, in order, if one may be meant by the other."""


def meant(given: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return "; did you mean X?" with the known names that are spelt much like the given one, or `otherwise` if there are none."""
    from difflib import get_close_matches

    by_lower = {name.lower(): name for name in known}
    found = [by_lower[name] for name in get_close_matches(given.lower()[:80], by_lower, cutoff=ALIKE)]
    return f"; did you mean {' or '.join(found)}?" if found else otherwise and f"; {otherwise}"
