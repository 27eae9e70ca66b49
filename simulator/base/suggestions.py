"""Suggestions for a name that does not exist."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["alike", "meant", "with_keys"]

ALIKE: Final = 0.66
"""The smallest share of letters that two names must have in common, in order, for one to be suggested in place of the other."""

CLOSE: Final = 0.1
"""How far another suggestion may lag behind the most similar one."""


def meant(given: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return "; did you mean X?" with the known names that are spelt much like the given one, or `otherwise` if there are none."""
    found = alike(given, known)
    return f"; did you mean {' or '.join(found)}?" if found else otherwise and f"; {otherwise}"


def alike(given: str, known: Iterable[str]) -> list[str]:
    """Return the known names that are spelt much like the given one, most similar first."""
    from difflib import SequenceMatcher, get_close_matches

    given = given.lower().lstrip("-")[:80]
    spelt = {name.lower().lstrip("-"): name for name in known}
    near = {name: SequenceMatcher(None, name, given).ratio() for name in get_close_matches(given, spelt, cutoff=ALIKE)}
    return [spelt[name] for name, ratio in near.items() if ratio > max(near.values()) - CLOSE]


def with_keys(problem: str, whose: str, known: Iterable[str]) -> str:
    """Return the problem with a mapping, in the form of `first_problem`. For an unknown key, add the key that was probably meant, or else
    list all keys."""
    keys = list(known)
    all_keys = f"{whose} keys are {', '.join(keys)}"
    place, unknown, _ = problem.rpartition(": unknown key")
    return f"{problem}{meant(place.rpartition('.')[2], keys, all_keys)}" if unknown else f"{problem}; {all_keys}"
