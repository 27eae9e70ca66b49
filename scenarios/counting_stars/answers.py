"""Read the numbers that a reply lists, and score them against the stars."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, final

from longspan.simulator.reading.matching import json_values

__all__ = ["Names", "StarMark", "mark_stars", "read_numbers"]

Names = Sequence[int | None]
"""Entries of a list, in order. None stands for an entry that is not a whole number."""

MAX_ENTRIES: Final = 100_000
"""Maximum number of entries read from an answer."""

_WIDE: Final = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {ord("、"): ord(","), ord("【"): ord("["), ord("】"): ord("]")}
"""Full-width characters, as typed on Chinese keyboards, and their ASCII equivalents."""

_DIGITS: Final = re.compile(r"(?<![\w.])[0-9]{1,15}(?![0-9.]*[0-9])")
_BARE: Final = re.compile(r"[^\S\n]*[0-9]{1,15}(?:[^\S\n]*[,;][^\S\n]*[0-9]{1,15})*+[^\S\n]*+(?:[.;,][^\S\n]*+)?")
"""A line that consists of numbers separated by commas."""

BOTH: Final = 0.5
ONLY_WRONG: Final = 0.25
"""For reasoning: score of a star if the answer has both of its counts, or only the wrong one."""


@final
class StarMark(NamedTuple):
    """The scores of a star, in [0, 1]: whether the answer has it (`membership`), and whether it is in its place (`slot`).

    `right`, `wrong`: whether the answer has the star's right and wrong counts.
    """

    membership: float
    slot: float
    right: bool
    wrong: bool


def read_numbers(reply: str) -> Names:
    """Return the numbers that a reply lists. Never raises.

    The last JSON list or object with numbers counts, read leniently; without JSON, the last line that consists of numbers. A single
    number in brackets, such as a footnote mark, is a list only if there is no other.
    """
    text = reply.translate(_WIDE)
    found = [list(islice(_names(value, False), MAX_ENTRIES)) for value in json_values(text)]
    lists = [names for names in found if any(name is not None for name in names)]
    if lists:
        return next((names for names in reversed(lists) if len(names) > 1), lists[-1])
    lines = [line for line in text.splitlines() if _BARE.fullmatch(line)]
    return [int(digits) for digits in islice(re.findall(r"[0-9]+", lines[-1]), MAX_ENTRIES)] if lines else []


def _names(value: Any, inside: bool) -> Iterator[int | None]:
    """Yield the entries in a JSON value, in order. `inside` a list, an entry that is not a number keeps its place."""
    match value:
        case bool() | None:
            if inside:
                yield None
        case int():
            yield value
        case float():
            if value.is_integer() and math.isfinite(value):
                yield int(value)
            elif inside:
                yield None
        case str():
            numbers = _DIGITS.findall(value)
            yield from map(int, numbers)
            if inside and not numbers:
                yield None
        case list():
            for item in value:
                yield from _names(item, True)
        case dict():
            for item in value.values():
                yield from _names(item, False)


def mark_stars(right: Sequence[int], wrong: Sequence[int] | None, names: Names) -> list[StarMark]:
    """Score each star, given the right counts, the wrong ones (None for searching) and the answer.

    The answer is truncated to the number of stars, repeated entries are dropped (section 2.2), and each star is looked up. For
    reasoning, a star scores 1 if the answer has only its right count, 0.5 for both, and 0.25 for only the wrong one, as in the authors'
    script.
    """
    slots: list[int | None] = []
    for name in names[: len(right)]:
        if name is None or name not in slots:
            slots.append(name)
    slots += [None] * (len(right) - len(slots))
    known = set(slots)
    offs: Names = [None] * len(right) if wrong is None else wrong
    return [_mark(count, off, slot, known) for count, off, slot in zip(right, offs, slots, strict=True)]


def _mark(count: int, off: int | None, slot: int | None, known: set[int | None]) -> StarMark:
    right, wrong = count in known, off is not None and off in known
    return StarMark(_worth(right, wrong), _worth(slot == count, off is not None and slot == off), right, wrong)


def _worth(right: bool, wrong: bool) -> float:
    return (BOTH if wrong else 1.0) if right else ONLY_WRONG * wrong
