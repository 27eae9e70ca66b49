"""Reads and scores answers: the numbers that a reply lists, compared with the stars."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, final

from longspan.simulator.grading.matching import json_values

__all__ = ["Mark", "Names", "listed", "marks"]

Names = Sequence[int | None]
"""The entries of a list, in order. None is an entry that is not a whole number."""

MAX_ENTRIES: Final = 100_000
"""How many entries of an answer are read."""

_WIDE: Final = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {ord("、"): ord(","), ord("【"): ord("["), ord("】"): ord("]")}
"""Full-width characters, as typed on Chinese keyboards, and their ASCII equivalents."""

_DIGITS: Final = re.compile(r"(?<![\w.])[0-9]{1,15}(?![0-9.]*[0-9])")
_BARE: Final = re.compile(r"[^\S\n]*[0-9]{1,15}(?:[^\S\n]*[,;][^\S\n]*[0-9]{1,15})*+[^\S\n]*+(?:[.;,][^\S\n]*+)?")
"""Matches a line of nothing but numbers separated by commas."""

BOTH: Final = 0.5
ONLY_WRONG: Final = 0.25
"""Reasoning: the score of a star if the answer has both of its counts, or only the wrong one."""


@final
class Mark(NamedTuple):
    """The scores of a star, in [0, 1]: whether the answer has it (`membership`), and whether it is in its place (`slot`).

    `right`, `wrong`: whether the answer has the star's right and wrong counts.
    """

    membership: float
    slot: float
    right: bool
    wrong: bool


def listed(reply: str) -> Names:
    """Return the numbers that a reply lists. Never raises.

    The last JSON list or object with numbers counts, read leniently; without JSON, the last line that is nothing but numbers. A number
    alone in brackets, such as the mark of a note, is a list only if there is no other.
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


def marks(right: Sequence[int], wrong: Sequence[int] | None, names: Names) -> list[Mark]:
    """Score each star, given the right counts, the wrong ones (None: the task is searching) and the answer.

    The answer is cut to as many entries as there are stars, repeated entries are dropped (section 2.2), and each star is looked up.
    Reasoning: 1 for a star if the answer has only its right count, 0.5 for both, 0.25 for only the wrong one, as in the authors' script.
    """
    slots: list[int | None] = []
    for name in names[: len(right)]:
        if name is None or name not in slots:
            slots.append(name)
    slots += [None] * (len(right) - len(slots))
    known = set(slots)
    offs: Names = [None] * len(right) if wrong is None else wrong
    return [_mark(count, off, slot, known) for count, off, slot in zip(right, offs, slots, strict=True)]


def _mark(count: int, off: int | None, slot: int | None, known: set[int | None]) -> Mark:
    right, wrong = count in known, off is not None and off in known
    return Mark(_worth(right, wrong), _worth(slot == count, off is not None and slot == off), right, wrong)


def _worth(right: bool, wrong: bool) -> float:
    return (BOTH if wrong else 1.0) if right else ONLY_WRONG * wrong
