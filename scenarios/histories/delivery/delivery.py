"""The interface of a delivery, which makes tests of a history and its questions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from random import Random
from typing import ClassVar, Literal

from longspan.scenarios.histories.picked import PickedHistory, PickedQuestion
from longspan.simulator.contract.script import Script

__all__ = ["Delivery", "DeliveryName"]

DeliveryName = Literal["told", "context", "weave"]


class Delivery(ABC):
    """`tokens`: the length of made-up histories. `questions`: how many are asked about each history if no number is set; None for all."""

    tokens: ClassVar[int] = 20_000
    questions: ClassVar[int | None] = None

    @abstractmethod
    def one(self, picked: PickedHistory, random: Random) -> Script:
        """Return a single test of a history, in one conversation."""

    @abstractmethod
    def series(self, picked: PickedHistory, id: str) -> Iterator[tuple[str, Script]]:
        """Yield all tests of a history, by their ids. `id` is the history's."""


def question_id(id: str, one: PickedQuestion) -> str:
    """Return the id of the test with one question about a history."""
    return f"{id}-q{one.number:03}"
