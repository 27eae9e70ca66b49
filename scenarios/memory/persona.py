"""Persona: habits that the user lets slip shape answers to unrelated questions much later, and not those that are for somebody else."""

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
from longspan.simulator.grading.matching import some
from longspan.simulator.grading.reading.echoes import without_echo

__all__ = ["Persona"]

OWN: Final = "own"
OTHER: Final = "other"
"""Whom an answer is for: the user, or somebody else."""


@final
class Persona(Scenario):
    """The user lets `habits` of their own slip, and never asks to have them remembered; each should shape one answer and not another.

    A habit is an ingredient avoided, a unit, a way of writing dates, a title, a seat, or a closing phrase. Much later comes a question
    that does not mention it, with one right answer among 3 to 16 for who has that habit, and another for somebody else who has a
    different one, as the question says. A habit counts if both answers are right; the score is the share of habits that count. So
    nothing is earned by having no habits in mind, and nothing by heeding them everywhere.
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
        """Return the score of picking an answer for the user, and giving somebody else the answer in the question."""
        return fmean(1 / len(HABITS[asked["habit"]].choices(asked["values"])) for asked in facts["asked"] if asked["for"] == OWN)

    def guess(self, message: str) -> str | None:
        wording = Wording(self.name)
        for habit in HABITS.values():
            if (values := wording.read(f"{habit.name}_asked", message)) and (choices := habit.choices(values)):
                return habit.reply(Random(message).choice(choices), values)
            if (values := wording.read(f"{habit.name}_other", message)) and (wanted := habit.wanted(values)) in habit.choices(values):
                return habit.reply(wanted, values)
        return None

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        items = [_item(HABITS[asked["habit"]], asked, answer) for asked, answer in zip(facts["asked"], record.answers, strict=False)]
        habits = list(dict.fromkeys(asked["habit"] for asked in facts["asked"]))
        counting = [habit for habit in habits if [item.score for item in items if item.labels["habit"] == habit] == [1, 1]]
        return Grade(
            score=len(counting) / len(habits),
            reason=f"{len(counting)} of {len(habits)} habits heeded where they belong and there alone; " + "; ".join(map(_told, items)),
            turns=tuple(item.turn for item in items if item.turn is not None),
            items=tuple(items),
        )

    def metrics(self, tests: Sequence[Marked]) -> Mapping[str, float]:
        """Return the shares of answers for the user that heed a habit, and of those for somebody else that it is kept out of."""
        shares: dict[str, float] = {}
        for name, whose in (("heeded", OWN), ("kept out", OTHER)):
            scores = [item.score for test in tests for item in test.items if item.labels["for"] == whose and item.score is not None]
            shares |= {name: fmean(scores)} if scores else {}
        return shares


def _item(habit: Habit, asked: Mapping[str, Any], answer: Exchange) -> Item:
    """Return how a question was answered."""
    settled = habit.settled(without_echo(answer.reply, answer.text), asked["values"])
    verdict = ": it hedges" if len(settled) > 1 else ""
    return Item(
        name=f"{habit.name}, for {'the user' if asked['for'] == OWN else 'somebody else'}",
        score=float(settled == [asked["right"]]),
        labels={"habit": habit.name, "for": asked["for"]},
        note=f"expected {asked['right']}, the reply settles on {some(settled, 4) or 'none'}{verdict}",
        turn=answer.turn,
    )


def _told(item: Item) -> str:
    return f"{item.name}: {'right' if item.score else item.note}"
