"""Filler for the places in its outline that a test leaves empty."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from longspan.simulator.contract.script import Segment
from longspan.simulator.filler.filler import Distraction, Filler

__all__ = ["fill_places"]


def fill_places(filler: Filler, seed: str, outline: Iterable[Segment]) -> Iterator[Distraction]:
    """Yield one filler message for each turn of an outline, to use if the test leaves that place empty.

    The messages depend on the test's `seed` alone.
    """
    filler = filler.reseed(f"{seed}/places")
    for segment in outline:
        share = max(1, segment.tokens // max(1, segment.turns))
        for number in range(segment.turns):
            yield filler.make(share) if number < len(segment.told) else filler.ask(share)
