"""A scenario whose tests tell a source and ask for its minutes, and agents that write some."""

from __future__ import annotations

from random import Random
from typing import Any, ClassVar, final

from longspan.simulator.contract.graded_record import Grade, Record
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Line, Script

__all__ = ["Brief", "Full", "Minutes"]

POINTS = ("The budget grew by five.", "Anna leads the project.", "The next meeting is on Friday.")


class Minutes(Scenario):
    """Tells three points one by one, and asks for minutes. Tests of equal seeds and runs have the same source."""

    name: ClassVar[str] = "minutes"
    skills: ClassVar[tuple[Skill, ...]] = ("information integration",)

    def make(self, random: Random) -> Script:
        lines = [*(Line(f"Point: {point}") for point in POINTS), Line("Now write the minutes.", ideal=" ".join(POINTS), asks=True)]
        return Script(facts={"source": f"meeting {random.randrange(10**9)}"}, lines=lines)

    def grade(self, facts: Any, record: Record) -> Grade:
        return Grade(score=1.0, reason="minutes were written", turns=(record.answer.turn,))


class _Agent:
    """Answers whatever it is asked with its minutes."""

    minutes: ClassVar[str]

    def reply(self, message: Any) -> str:
        return self.minutes if "minutes" in message.text else "OK."


@final
class Full(_Agent):
    """Has all points, and something that is none."""

    minutes = " ".join((*POINTS, "It was a fine day."))


@final
class Brief(_Agent):
    """Has one point, in words that the judge of the tests knows again."""

    minutes = POINTS[0]
