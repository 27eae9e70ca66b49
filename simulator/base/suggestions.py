"""Suggestions for a misspelled name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["similar_names", "suggest", "with_keys"]

ALIKE: Final = 0.66
"""The minimum similarity of a suggested name: the share of letters in common, in order."""

CLOSE: Final = 0.1
"""The largest difference in similarity between the best suggestion and another one."""


def suggest(given: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return "; did you mean X?" with the known names that resemble the given one. Without any, return `otherwise`."""
    found = similar_names(given, known)
    return f"; did you mean {' or '.join(found)}?" if found else otherwise and f"; {otherwise}"


def similar_names(given: str, known: Iterable[str]) -> list[str]:
    """Return the known names that resemble the given one, most similar first."""
    from difflib import SequenceMatcher, get_close_matches

    given = given.lower().lstrip("-")[:80]
    spelt = {name.lower().lstrip("-"): name for name in known}
    near = {name: SequenceMatcher(None, name, given).ratio() for name in get_close_matches(given, spelt, cutoff=ALIKE)}
    return [spelt[name] for name, ratio in near.items() if ratio > max(near.values()) - CLOSE]


def with_keys(problem: str, whose: str, known: Iterable[str]) -> str:
    """Return a problem with a mapping, in the form of `first_problem`, with a hint: the key that was probably meant, or all keys."""
    keys = list(known)
    all_keys = f"{whose} keys are {', '.join(keys)}"
    place, unknown, _ = problem.rpartition(": unknown key")
    return f"{problem}{suggest(place.rpartition('.')[2], keys, all_keys)}" if unknown else f"{problem}; {all_keys}"
