"""Told delivery: tell each turn of a history once, and ask each question from the state at its end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import final

from longspan.scenarios.histories.delivery.delivery import Delivery, question_id
from longspan.scenarios.histories.picked import PickedHistory
from longspan.simulator.contract.script import Script

__all__ = ["ToldOnce"]


@final
class ToldOnce(Delivery):
    """Makes one test that tells the history, and one for each question that branches off it."""

    def one(self, picked: PickedHistory, random: Random) -> Script:
        one = random.choice(picked.asked)
        picked = picked.only(one)
        return picked.script(one, [*picked.lines(), picked.line(one)])

    def series(self, picked: PickedHistory, id: str) -> Iterator[tuple[str, Script]]:
        yield id, Script(facts=picked.facts, lines=picked.lines(), alone=True, recorded=picked.recorded)
        for one in picked.asked:
            line = replace(picked.line(one), sent_at=one.question.at)
            yield question_id(id, one), replace(picked.script(one, [line]), trunk=id)
