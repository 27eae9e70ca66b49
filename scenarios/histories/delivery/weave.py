"""Weave delivery: a history's sessions are woven into a long conversation with other tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import ClassVar, final

from longspan.scenarios.histories.delivery.delivery import Delivery
from longspan.scenarios.histories.history import History
from longspan.scenarios.histories.picked import PickedHistory
from longspan.scenarios.histories.telling import between_people
from longspan.simulator.contract.script import Script

__all__ = ["Woven"]


@final
class Woven(Delivery):
    """Makes one test with a segment for each session and all questions at the end."""

    tokens: ClassVar[int] = 6_000
    questions: ClassVar[int | None] = 5

    def one(self, picked: PickedHistory, random: Random) -> Script:
        return _script(picked)

    def series(self, picked: PickedHistory, id: str) -> Iterator[tuple[str, Script]]:
        yield id, _script(picked)


def _script(picked: PickedHistory) -> Script:
    about = _about(picked.history)
    first, *others = map(picked.line, picked.asked)
    opening = replace(first, text=f"I have some questions about {about}. {first.text}")
    lines = [*picked.lines(dated=True), opening, *(replace(line, together=True) for line in others)]
    facts = picked.facts | {"questions": [one.facts for one in picked.asked]}
    farewell = f"That was all about {about}. Please disregard them from now on."
    tags = tuple(dict.fromkeys(one.question.kind for one in picked.asked if one.question.kind))
    return Script(facts=facts, lines=lines, farewell=farewell, tags=tags, recorded=picked.recorded)


def _about(history: History) -> str:
    """Return the name that questions use for a history."""
    if not between_people(history):
        return "our earlier conversations, of which you were told"
    names = list(dict.fromkeys(turn.speaker for turn in history.turns))
    return f"the conversations of {' and '.join(names[:2])}{' and others' if len(names) > 2 else ''}, of which you were told"
