"""Sets aside what a reply says of the user's other people."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["without_others"]


def without_others(reply: str, others: Iterable[str]) -> str:
    """Return a reply without the clauses that name one of the user's people ("your aunt's is teal"): they do not answer for the user."""
    named = "|".join(map(re.escape, others))
    if not named:
        return reply
    other = re.compile(rf"\byour {{1,3}}(?:{named})\b", re.IGNORECASE)
    return "".join(" " if other.search(clause) else clause for clause in _CLAUSES.split(reply))


_CLAUSES = re.compile(r"([.!?;,()\n\u2013\u2014]|\b(?:and|while|whereas|but|though|although|not)\b)", re.IGNORECASE)
