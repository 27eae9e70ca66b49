"""Interference: similar facts about other people, stated between a test's needles and its question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Annotated, Any

from pydantic import Field

from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.contract.script import Line

__all__ = ["Similar", "count_similar", "draw_people", "with_asides"]

Similar = Annotated[int, Field(ge=0, le=50, exclude_if=lambda number: number == 0)]
"""Number of similar facts between the last needle and the question. Zero is not journaled, so that tests equal those made before the
parameter existed."""


def draw_people(random: Random, number: int) -> list[str]:
    """Draw distinct people other than the user, such as "aunt". Drawing more leaves the first ones unchanged."""
    everybody: list[str] = load_words("people")
    return random.sample(everybody, len(everybody))[:number]


def with_asides(lines: Sequence[Line], asides: Sequence[str]) -> list[Line]:
    """Return a test's lines with irrelevant lines inserted before the last one, its question."""
    return [*lines[:-1], *(Line(text, needle=False) for text in asides), *lines[-1:]]


def count_similar(facts: Mapping[str, Any], told: str | None = None) -> dict[str, float]:
    """Return the number of similar facts in a test and, if its fact `told` lists them, the number of updates."""
    numbers: dict[str, float] = {"similar": len(facts.get("similar", ()))}
    changes = facts.get(told, ()) if told is not None else ()
    return numbers | {"updates": len(changes) - 1} if changes else numbers
