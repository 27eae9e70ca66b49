"""Two agents on the same tests: by how much one is ahead, and whether chance explains it."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import NamedTuple, final

from longspan.simulator.analysis.statistics import (
    Difference,
    by_test,
    holm,
    least_conversations,
    more_conversations,
    paired_p,
    permutation_p,
)
from longspan.simulator.results.graded_runs import Column

__all__ = ["Pair", "corrected", "pair_of"]


@final
class Pair(NamedTuple):
    """Two agents on the same tests of a column, the agent with the higher score first. Tests without a score count as 0.

    `conversations` is the number of independent conversations that both have had; `recorded` is whether some of them tell recorded
    histories. `p` is the p-value of a permutation test over conversations, and `corrected` is `p` corrected for all pairs. Where
    conversations are too few for any difference to be significant, `p_of_tests` is the p-value of a permutation test over tests. It says
    nothing about other conversations, and is None elsewhere. `more` is how many more conversations would show a significant difference, or
    None if no number would. `between` is the 95% interval of a difference in [-1, 1], None if there is none.
    """

    column: Column
    better: str
    other: str
    difference: float
    conversations: int
    tests: int
    unscored: int
    p: float
    corrected: float
    p_of_tests: float | None
    more: int | None
    recorded: bool = False
    between: tuple[float, float] | None = None


def pair_of(
    column: Column, one: str, other: str, apart: Sequence[Difference], *, pairs: int, unscored: int = 0, recorded: bool = False
) -> Pair:
    """Compare two agents by how far `apart` they are in each shared test. `pairs` is how many pairs of agents are compared."""
    parts = by_test(apart)
    difference, conversations = fsum(parts), len({each.conversation for each in apart})
    few = conversations < min(len(apart), least_conversations(pairs))
    p = paired_p(apart)
    return Pair(
        column=column,
        better=one if difference >= 0 else other,
        other=other if difference >= 0 else one,
        difference=abs(difference),
        conversations=conversations,
        tests=len(apart),
        unscored=unscored,
        p=p,
        corrected=p,
        p_of_tests=permutation_p(parts) if few else None,
        more=more_conversations(apart, pairs),
        recorded=recorded,
    )


def corrected(pairs: Sequence[Pair]) -> list[Pair]:
    """Return pairs with their p-values corrected for all of them."""
    return [pair._replace(corrected=p) for pair, p in zip(pairs, holm([pair.p for pair in pairs]), strict=True)]
