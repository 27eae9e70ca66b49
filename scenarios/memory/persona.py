"""Persona: habits that the user mentions in passing must shape later answers for the user, but not for other people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from statistics import fmean
from typing import Any, ClassVar, Final, final

from pydantic import Field

from longspan.scenarios.memory.habits import HABITS, Habit
from longspan.scenarios.memory.wording import Wording
from longspan.simulator.contract.graded_record import Exchange, Grade, Item, Marked, Record
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Line, Script
from longspan.simulator.reading.matching import join_some
from longspan.simulator.reading.replies.echoes import without_echo

__all__ = ["Persona"]

OWN: Final = "own"
OTHER: Final = "other"
"""The person an answer is for: the user or another person."""


@final
class Persona(Scenario):
    """Mention `habits` habits of the user in passing; each should shape an answer for the user, and not one for another person.

    The user never asks the agent to remember a habit. It is an ingredient to avoid, a unit, a date format, a title, a seat or a closing
    phrase. Much later, a question that does not mention it has one right answer out of 3 to 16 for the user. A second question is for
    another person, whose different habit it states. A habit counts if both answers are right, and the score is the share of habits that
    count. So ignoring habits scores nothing, and neither does applying them to everyone.
    """

    name: ClassVar[str] = "persona"
    skills: ClassVar[tuple[Skill, ...]] = ("recall", "information integration")
    compounded: ClassVar[bool] = True
    topics: ClassVar[frozenset[str]] = frozenset({"habits"})

    habits: int = Field(default=3, ge=1, le=6)

    def make(self, random: Random) -> Script:
        wording = Wording(self.name)
        names = random.sample(list(HABITS), self.habits)
        drawn = {name: HABITS[name].draw(random) for name in names}
        lines = [Line(wording.say(random, f"{name}_said", **drawn[name].said)) for name in names]
        order = names * 2
        random.shuffle(order)
        asked: list[dict[str, Any]] = []
        for at, name in enumerate(order):
            habit, own = HABITS[name], name not in order[:at]
            whose, values, right = (OWN, drawn[name].own, drawn[name].right) if own else (OTHER, drawn[name].other, drawn[name].wanted)
            asked.append({"habit": name, "for": whose, "values": dict(values), "right": right})
            text = wording.say(random, f"{name}_{'asked' if own else 'other'}", **values)
            needs = (names.index(name),) if own else ()
            lines.append(Line(text, ideal=habit.reply(right, values), asks=True, needs=needs))
        return Script(facts={"asked": asked}, lines=lines, farewell=wording.say(random, "farewell"))

    def chance(self, facts: Mapping[str, Any]) -> float:
        """Return the score of guessing the answers for the user, and reading those for the other person from the question."""
        return fmean(1 / len(HABITS[asked["habit"]].choices(asked["values"])) for asked in facts["asked"] if asked["for"] == OWN)

    def guess(self, message: str) -> str | None:
        wording = Wording(self.name)
        for habit in HABITS.values():
            if (values := wording.read(f"{habit.name}_asked", message)) and (choices := habit.choices(values)):
                return habit.reply(Random(message).choice(choices), values)
            if (values := wording.read(f"{habit.name}_other", message)) and (wanted := habit.right_answer(values)) in habit.choices(values):
                return habit.reply(wanted, values)
        return None

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        items = [_item(HABITS[asked["habit"]], asked, answer) for asked, answer in zip(facts["asked"], record.answers, strict=False)]
        habits = list(dict.fromkeys(asked["habit"] for asked in facts["asked"]))
        counting = [habit for habit in habits if [item.score for item in items if item.labels["habit"] == habit] == [1, 1]]
        return Grade(
            score=len(counting) / len(habits),
            reason=f"{len(counting)} of {len(habits)} habits heeded where they belong and there alone; "
            + "; ".join(map(_describe_item, items)),
            turns=tuple(item.turn for item in items if item.turn is not None),
            items=tuple(items),
        )

    def metrics(self, tests: Sequence[Marked]) -> Mapping[str, float]:
        """Return the share of answers for the user that follow a habit, and the share of answers for another person that ignore it."""
        shares: dict[str, float] = {}
        for name, whose in (("heeded", OWN), ("kept out", OTHER)):
            scores = [item.score for test in tests for item in test.items if item.labels["for"] == whose and item.score is not None]
            shares |= {name: fmean(scores)} if scores else {}
        return shares


def _item(habit: Habit, asked: Mapping[str, Any], answer: Exchange) -> Item:
    """Grade one answer."""
    settled = habit.find_choices(without_echo(answer.reply, answer.text), asked["values"])
    verdict = ": it hedges" if len(settled) > 1 else ""
    return Item(
        name=f"{habit.name}, for {'the user' if asked['for'] == OWN else 'somebody else'}",
        score=float(settled == [asked["right"]]),
        labels={"habit": habit.name, "for": asked["for"]},
        note=f"expected {asked['right']}, the reply settles on {join_some(settled, 4) or 'none'}{verdict}",
        turn=answer.turn,
    )


def _describe_item(item: Item) -> str:
    return f"{item.name}: {'right' if item.score else item.note}"
