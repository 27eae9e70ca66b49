"""Rungs: the items of a test that asks for plain facts at many distances, and at once. How far back an agent remembers is read off them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, final

from longspan.simulator.contract.graded_record import Item

__all__ = ["Rung", "rung", "rungs", "unanswered"]

STRAND: Final = "strand"
ASKED: Final = "asked"
CHANCE: Final = "chance"
AT_ONCE: Final = "at once"
LATER: Final = "later"


@final
class Rung(NamedTuple):
    """A question for facts, asked in `turn`. `strand` names what is told apart: plain facts, updates, lists. One that is `at_once` was
    asked in the message that told its fact, so that nothing had to be remembered. `score`: in [0, 1], None if undecided. `chance`: the
    expected score of a guess."""

    strand: str
    at_once: bool
    score: float | None
    chance: float
    turn: int


def rung(name: str, strand: str, score: float | None, *, at_once: bool, chance: float, note: str, turn: int) -> Item:
    """Return the item of a question for facts; see Rung."""
    labels = {STRAND: strand, ASKED: AT_ONCE if at_once else LATER}
    return Item(name=name, score=score, labels=labels, numbers={CHANCE: chance}, note=note, turn=turn)


def rungs(items: Iterable[Item]) -> list[Rung]:
    """Return the rungs among items."""
    return [
        Rung(item.labels[STRAND], item.labels[ASKED] == AT_ONCE, item.score, item.numbers[CHANCE], item.turn or 0)
        for item in items
        if _is_rung(item)
    ]


def unanswered(items: Iterable[Item]) -> tuple[Item, ...]:
    """Return the rungs among the items of a test that nobody answered, without their scores."""
    return tuple(item.model_copy(update={"score": None, "note": ""}) for item in items if _is_rung(item))


def _is_rung(item: Item) -> bool:
    return item.turn is not None and {STRAND, ASKED} <= item.labels.keys() and CHANCE in item.numbers
