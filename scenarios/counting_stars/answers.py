"""What an answer is worth: the numbers that a reply lists, and how they compare with the stars."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, final

from longspan.simulator.grading.matching import json_values

__all__ = ["Mark", "Names", "listed", "marks"]

Names = Sequence[int | None]
"""The entries of a list, in order: a number, or None for one that is no whole number."""

MOST: Final = 100_000
"""Entries of an answer that are read."""

_WIDE: Final = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {ord("、"): ord(","), ord("【"): ord("["), ord("】"): ord("]")}
"""Full-width characters, as Chinese keyboards make them, and what they stand for."""

_DIGITS: Final = re.compile(r"(?<![\w.])[0-9]{1,15}(?![0-9.]*[0-9])")
_BARE: Final = re.compile(r"[^\S\n]*[0-9]{1,15}(?:[^\S\n]*[,;][^\S\n]*[0-9]{1,15})*+[^\S\n]*[.;,]?[^\S\n]*")
"""A line that is nothing but numbers with commas between them."""

BOTH: Final = 0.5
ONLY_WRONG: Final = 0.25
"""Reasoning: what a star is worth of which the answer has both counts, or the wrong one alone."""


@final
class Mark(NamedTuple):
    """What one star scores, both in [0, 1]: whether the answer has it (`membership`), and whether it has it in its place (`slot`)."""

    membership: float
    slot: float
    right: bool
    wrong: bool


def listed(reply: str) -> Names:
    """The numbers that a reply lists: those of its last JSON list or object that has any, read leniently; without JSON, those
    of its last line that is nothing but numbers. Never raises."""
    text = reply.translate(_WIDE)
    for value in reversed(json_values(text)):
        names = list(islice(_names(value, False), MOST))
        if any(name is not None for name in names):
            return names
    lines = [line for line in text.splitlines() if _BARE.fullmatch(line)]
    return [int(digits) for digits in islice(re.findall(r"[0-9]+", lines[-1]), MOST)] if lines else []


def _names(value: Any, inside: bool) -> Iterator[int | None]:
    """The entries in a JSON value, in order. `inside` a list, what is no number keeps its place."""
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
            found = _DIGITS.findall(value)
            yield from map(int, found)
            if inside and not found:
                yield None
        case list():
            for each in value:
                yield from _names(each, True)
        case dict():
            for each in value.values():
                yield from _names(each, False)


def marks(right: Sequence[int], wrong: Sequence[int] | None, names: Names) -> list[Mark]:
    """What each star scores, given the right counts, the wrong ones (None: the task is searching) and the answer.

    The answer is cut to as many entries as there are stars, what comes twice is dropped (section 2.2), and each star looked
    up. Reasoning: 1 for a star of which the answer has only the right count, 0.5 for both, 0.25 for only the wrong one;
    there the answer is cut to as many stars, since both counts of one star say no more than one.
    """
    slots: list[int | None] = []
    for name in names[: len(right)]:
        if name is None or name not in slots:
            slots.append(name)
    slots += [None] * (len(right) - len(slots))
    if wrong is None:
        named = set(slots)
        return [Mark(float(count in named), float(slot == count), count in named, False) for count, slot in zip(right, slots, strict=True)]
    known = _within(right, wrong, names)
    return [
        Mark(_worth(count in known, off in known), _worth(slot == count, slot == off), count in known, off in known)
        for count, off, slot in zip(right, wrong, slots, strict=True)
    ]


def _worth(right: bool, wrong: bool) -> float:
    return (BOTH if wrong else 1.0) if right else ONLY_WRONG * wrong


def _within(right: Sequence[int], wrong: Sequence[int], names: Names) -> set[int]:
    """The numbers of the answer up to the one that would be about a star too many. A number that is no star's counts as one."""
    about: dict[int, list[int]] = {}
    for star, counts in enumerate(zip(right, wrong, strict=True)):
        for count in counts:
            about.setdefault(count, []).append(star)
    stars: set[int] = set()
    known: set[int] = set()
    places = len(right)
    for name in names:
        if name is None or name in known:
            continue
        new = not stars.intersection(about.get(name, ()))
        if new and not places:
            continue
        places -= new
        known.add(name)
        stars.update(about.get(name, ())[:1] if new else ())
    return known
