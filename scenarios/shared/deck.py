"""A deck of cards that deals all of them before it deals any of them again."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Generic, TypeVar, final

__all__ = ["Deck"]

Card = TypeVar("Card")


@final
class Deck(Generic[Card]):
    """Cards in random order, shuffled again when all are dealt."""

    def __init__(self, random: Random, cards: Sequence[Card]) -> None:
        self._random = random
        self._cards = list(cards)
        self._left: list[Card] = []

    def deal(self) -> Card:
        if not self._left:
            # A copy, so that reshuffling does not depend on earlier deals. The order of random draws is part of what a seed means.
            self._left = self._random.sample(self._cards, len(self._cards))
        return self._left.pop()
