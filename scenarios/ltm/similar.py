"""Interference: similar facts about other people, told between a test's needles and its question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Annotated, Any

from pydantic import Field

from longspan.scenarios.shared.lists import words
from longspan.simulator.contract.script import Line

__all__ = ["Similar", "people", "planted", "with_asides"]

Similar = Annotated[int, Field(ge=0, le=50, exclude_if=lambda number: number == 0)]
"""How many similar facts are told between the last needle and the question. Without any, the parameter is not journaled: a test is the
one it was before there was the parameter."""


def people(random: Random, number: int) -> list[str]:
    """Draw people other than the user, such as "aunt", all different. Drawing more keeps the first ones the same."""
    everybody: list[str] = words("people")
    return random.sample(everybody, len(everybody))[:number]


def with_asides(lines: Sequence[Line], asides: Sequence[str]) -> list[Line]:
    """Return a test's lines with lines that no question needs inserted before the last one, its question."""
    return [*lines[:-1], *(Line(text, needle=False) for text in asides), *lines[-1:]]


def planted(facts: Mapping[str, Any], told: str | None = None) -> dict[str, float]:
    """Return how many similar facts a test has and, if its fact `told` lists them, how often the fact asked for changed."""
    numbers: dict[str, float] = {"similar": len(facts.get("similar", ()))}
    changes = facts.get(told, ()) if told is not None else ()
    return numbers | {"updates": len(changes) - 1} if changes else numbers
