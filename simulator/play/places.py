"""What is said in the places that a test leaves unsaid of its outline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from longspan.simulator.contract.script import Segment
from longspan.simulator.filler.filler import Distraction, Filler

__all__ = ["places"]


def places(filler: Filler, seed: str, outline: Iterable[Segment]) -> Iterator[Distraction]:
    """Yield what is said in the places of an outline if a test leaves them empty, one for each turn. `seed`: the test's, on which
    alone it depends."""
    filler = filler.reseeded(f"{seed}/places")
    for segment in outline:
        share = max(1, segment.tokens // max(1, segment.turns))
        for number in range(segment.turns):
            yield filler.make(share) if number < len(segment.told) else filler.ask(share)
