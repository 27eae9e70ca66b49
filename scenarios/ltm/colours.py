"""Colours (GoodAI, section 3.2): the user's favourite colour changes, and the last one counts."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, ClassVar, final

from pydantic import Field

from longspan.scenarios.ltm import paper_rules as paper
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.lists import words
from longspan.simulator.grading.matching import plain, some
from longspan.simulator.grading.settled_answers import settled_words
from longspan.simulator.record import Grade, Record
from longspan.simulator.scenario import Scenario, Skill
from longspan.simulator.script import Line, Script

__all__ = ["Colours"]


@final
class Colours(Scenario):
    """The favourite colour is stated `changes` times, never the same one twice in a row, and then asked for.

    The reply must name it as a word, in either spelling (grey, gray), and settle on it. A reply that names several
    colours hedges and scores 0, unless it denies the others or reports them as past ("it was blue, now it is red"; see
    settled_words). Any colour counts as another one, whether the test could have named it or not. An adjective does not
    make another colour ("dark blue" is blue), but a name of its own does ("navy blue" is not).
    """

    name: ClassVar[str] = "colours"
    skills: ClassVar[tuple[Skill, ...]] = ("recall",)
    topics: ClassVar[frozenset[str]] = frozenset({"colour"})

    changes: int = Field(default=3, ge=1, le=50)
    rules: paper.Rules = "longspan"

    def make(self, random: Random) -> Script:
        wording = Wording(self.name)
        colours: list[str] = []
        for _ in range(self.changes):
            colours.append(random.choice([colour for colour in words("colours") if colour not in colours[-1:]]))
        lines = [Line(wording.say(random, "change", colour=colour)) for colour in colours]
        lines.append(Line(wording.say(random, "question"), ideal=f"{colours[-1].capitalize()}.", asks=True, needs=(len(colours) - 1,)))
        return Script(
            facts={"colour": colours[-1], "told": colours},
            lines=lines,
            farewell=wording.say(random, "farewell"),
        )

    def chance(self, facts: Mapping[str, Any]) -> float:
        return 1 / len(words("colours"))

    def guess(self, message: str) -> str | None:
        asked = Wording(self.name).read("question", message) is not None
        return f"{Random(message).choice(words('colours')).capitalize()}." if asked else None

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        if self.rules == "paper":
            return paper.colours(facts, record)
        expected = _spelled(facts["colour"])
        answered = _answered(record.answer.reply, facts)
        verdict = ": it hedges" if len(answered) > 1 else ""
        return Grade(
            score=float(answered == [expected]),
            reason=f"expected {facts['colour']}, the reply settles on {some(answered) or 'no colour'}{verdict}",
            turns=(record.answer.turn,),
        )


def _answered(reply: str, facts: Mapping[str, Any]) -> list[str]:
    """Return the colours that the reply settles on, in a uniform spelling."""
    known = words("colour_words")
    candidates = [*known["colours"], *known["spellings"], facts["colour"], *facts.get("told", ())]
    return list(dict.fromkeys(_spelled(colour) for colour in settled_words(reply, candidates)))


def _spelled(colour: str) -> str:
    colour = plain(colour)
    return plain(words("colour_words")["spellings"].get(colour, colour))
