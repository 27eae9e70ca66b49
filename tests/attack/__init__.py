"""Attacks on everything that reads, writes, prints or serves. CI tries a tenth of them; LONGSPAN_ATTACK=all tries every one."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from typing import Final, TypeVar

T = TypeVar("T")

ALL: Final = os.environ.get("LONGSPAN_ATTACK") == "all"

SHARE: Final = 10
"""CI tries one in so many."""

TRIED: Final[Counter[str]] = Counter()
"""How many attacks of each kind this process has tried. Printed at the end of the tests, see tests/conftest.py."""


def sample(cases: Sequence[T], at_least: int = 1) -> list[T]:
    """Return all cases, or the same tenth of them each time, in order: `at_least` of them, if there are so many."""
    if ALL:
        return list(cases)
    count = min(len(cases), max(at_least, len(cases) // SHARE))
    return [cases[place] for place in sorted(random.Random(0).sample(range(len(cases)), count))]


def tried(kind: str, count: int = 1) -> None:
    """Count attacks that were tried, such as `tried("bytes flipped")`."""
    TRIED[kind] += count
