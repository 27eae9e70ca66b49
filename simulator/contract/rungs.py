"""Rungs: the items of a test that asks for plain facts at many distances. They show how far back an agent remembers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, final

from longspan.simulator.contract.graded_record import Item

__all__ = ["OUTCOMES", "Rung", "find_rungs", "make_rung", "mark_unanswered"]

STRAND: Final = "strand"
ASKED: Final = "asked"
TYPE: Final = "type"
OUTCOME: Final = "outcome"
CHANCE: Final = "chance"
HEARD: Final = "heard"
AT_ONCE: Final = "at once"
LATER: Final = "later"

OUTCOMES: Final[Mapping[str, str]] = {
    "right": "the expected value",
    "old": "the value before an update",
    "confused": "a value stated for another person",
    "other": "a value that was never stated",
    "several": "several values at once",
    "part": "a part of the list",
    "none": "no value",
}
"""A description of each outcome of a rung."""


@final
class Rung(NamedTuple):
    """A question for facts, asked in `turn`.

    `strand` names a group of facts with separate results: plain facts, updates, lists. `type` is the type of the fact, such as dog, or ""
    in runs that did not record it. `at_once`: the message that stated the fact also asked for it, so there was nothing to remember. `score`
    is in [0, 1], or None if undecided. `chance` is the expected score of a guess among all values of the type. `heard` is the expected
    score of a guess among the values stated so far, or `chance` if it was not recorded.

    `outcome` classifies the values in the reply. It is "" if unknown.
    - `right`: the expected value;
    - `old`: the value that an update replaced;
    - `confused`: one wrong value, which the conversation had stated for another fact of the type;
    - `other`: one value that the conversation had never stated;
    - `several`: two or more values, or a list of stated values;
    - `part`: some of the expected values of a list, and no wrong one;
    - `none`: no value.
    """

    strand: str
    at_once: bool
    score: float | None
    chance: float
    turn: int
    type: str
    heard: float
    outcome: str


def make_rung(
    name: str,
    strand: str,
    score: float | None,
    *,
    type: str,
    at_once: bool,
    chance: float,
    heard: float,
    outcome: str,
    note: str,
    turn: int,
) -> Item:
    """Return the item for a question for facts. See Rung."""
    labels = {STRAND: strand, ASKED: AT_ONCE if at_once else LATER, TYPE: type} | ({OUTCOME: outcome} if outcome else {})
    return Item(name=name, score=score, labels=labels, numbers={CHANCE: chance, HEARD: heard}, note=note, turn=turn)


def find_rungs(items: Iterable[Item]) -> list[Rung]:
    """Return the rungs among items."""
    return [_rung(item) for item in items if _is_rung(item)]


def mark_unanswered(items: Iterable[Item]) -> tuple[Item, ...]:
    """Return the rungs among the items of an unanswered test, without scores and outcomes."""
    return tuple(_without_answer(item) for item in items if _is_rung(item))


def _rung(item: Item) -> Rung:
    labels, numbers = item.labels, item.numbers
    return Rung(
        strand=labels[STRAND],
        at_once=labels[ASKED] == AT_ONCE,
        score=item.score,
        chance=numbers[CHANCE],
        turn=item.turn or 0,
        type=labels.get(TYPE, ""),
        heard=numbers.get(HEARD, numbers[CHANCE]),
        outcome=labels.get(OUTCOME, ""),
    )


def _without_answer(item: Item) -> Item:
    labels = {name: label for name, label in item.labels.items() if name != OUTCOME}
    return item.model_copy(update={"score": None, "note": "", "labels": labels})


def _is_rung(item: Item) -> bool:
    return item.turn is not None and {STRAND, ASKED} <= item.labels.keys() and CHANCE in item.numbers
