"""The interface of a delivery, which makes tests from a history and its questions."""

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
    """Makes tests from a history.

    `tokens`: length of generated histories. `questions`: default number of questions about each history, None for all.
    """

    tokens: ClassVar[int] = 20_000
    questions: ClassVar[int | None] = None

    @abstractmethod
    def one(self, picked: PickedHistory, random: Random) -> Script:
        """Return a single test of a history, in one conversation."""

    @abstractmethod
    def series(self, picked: PickedHistory, id: str) -> Iterator[tuple[str, Script]]:
        """Yield all tests of a history with their ids. `id` is the history's."""


def question_id(id: str, one: PickedQuestion) -> str:
    """Return the id of the test with one question about a history."""
    return f"{id}-q{one.number:03}"
