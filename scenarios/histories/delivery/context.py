"""Context delivery: the question's message contains the whole history."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import final

from longspan.scenarios.histories.delivery.delivery import Delivery, question_id
from longspan.scenarios.histories.picked import PickedHistory, PickedQuestion
from longspan.scenarios.histories.telling import as_text, between_people
from longspan.simulator.contract.script import Line, Script

__all__ = ["InContext"]


@final
class InContext(Delivery):
    """Makes a test of one message for each question."""

    def one(self, picked: PickedHistory, random: Random) -> Script:
        one = random.choice(picked.asked)
        return _script(picked.only(one), one)

    def series(self, picked: PickedHistory, id: str) -> Iterator[tuple[str, Script]]:
        for one in picked.asked:
            yield question_id(id, one), _script(picked, one)


def _script(picked: PickedHistory, one: PickedQuestion) -> Script:
    what = "a conversation" if between_people(picked.history) else "your earlier conversations with me"
    text = f"This is the record of {what}, with the dates of its sessions.\n\n{as_text(picked.history)}\n\n{one.asked.text}"
    return picked.script(one, [Line(text, ideal=one.asked.ideal, asks=True, needs=(), sent_at=one.question.at)])
