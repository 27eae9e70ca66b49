"""A scenario that tells a history and asks about it, for tests of branches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from random import Random
from typing import Any, ClassVar

from longspan.simulator.contract.graded_record import Grade, Record
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Line, Script

__all__ = ["ASKED", "BEGAN", "Diary"]

BEGAN = datetime(2023, 1, 1, 9)
ASKED = datetime(2024, 5, 1, 8)


class Diary(Scenario):
    """A diary of `entries` days, with a question about every third."""

    name: ClassVar[str] = "diary"
    skills: ClassVar[tuple[Skill, ...]] = ("recall",)
    entries: int = 12

    def make(self, random: Random) -> Script:
        raise NotImplementedError

    def series(self, tests: int, seed: str) -> Iterable[tuple[str, Script]]:
        for number in range(1, tests + 1):
            random = Random(f"{seed}/{number}")
            colours = [f"shade{random.randrange(10**6)}" for _ in range(self.entries)]
            lines = [
                Line(
                    f"Page {day}: boat{day} is {colour}.",
                    reply="Noted.",
                    sent_at=BEGAN + timedelta(days=day),
                    together=day > 0,
                    needle=day % 3 == 0,
                )
                for day, colour in enumerate(colours)
            ]
            yield f"d{number}", Script(facts={}, lines=lines, alone=True)
            for place, day in enumerate(range(0, self.entries, 3)):
                asked = Line(f"What colour is boat{day}?", asks=True, ideal=colours[day], needs=(place,), sent_at=ASKED)
                yield (
                    f"d{number}-q{day}",
                    Script(
                        facts={"colour": colours[day]},
                        lines=[asked],
                        alone=True,
                        trunk=f"d{number}",
                        tags=("first" if day == 0 else "later",),
                        counts=day != 3,
                    ),
                )

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        found = facts["colour"] in record.answer.reply
        return Grade(score=float(found), reason="it names the colour" if found else "another colour", turns=(record.answer.turn,))
