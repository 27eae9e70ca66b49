"""Colours (GoodAI, section 3.2): the user's favourite colour changes, and the last one counts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from random import Random
from typing import Any, ClassVar, final

from pydantic import Field

from longspan.scenarios.ltm import paper_rules as paper
from longspan.scenarios.ltm.similar import Similar, count_similar, draw_people, with_asides
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.base.words import plain
from longspan.simulator.contract.graded_record import Grade, Record
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Line, Script
from longspan.simulator.reading.matching import join_some
from longspan.simulator.reading.replies.reading import Reading, SettledValues, quote_clauses, user_names
from longspan.simulator.reading.replies.values import Values

__all__ = ["Colours"]


@final
class Colours(Scenario):
    """State the favourite colour `changes` times, never the same one twice in a row, and then ask for it.

    The reply must give it as a word, in either spelling (grey, gray). A reply that names several colours hedges and scores 0, unless it
    denies the others or reports them as past ("it was blue, now it is red"; see settled_words). Any other colour counts as wrong, even
    one that tests never use. An adjective does not make another colour ("dark blue" is blue), but a name with its own meaning does
    ("navy blue" is not blue). After the last change, the favourite colours of `similar` other people are stated. None is the right one,
    and statements about these people do not count.
    """

    name: ClassVar[str] = "colours"
    skills: ClassVar[tuple[Skill, ...]] = ("recall",)
    topics: ClassVar[frozenset[str]] = frozenset({"colour"})
    asks_again: ClassVar[bool] = True

    changes: int = Field(default=3, ge=1, le=50)
    similar: Similar = 0
    rules: paper.Rules = "longspan"

    def make(self, random: Random) -> Script:
        wording = Wording(self.name)
        colours: list[str] = []
        for _ in range(self.changes):
            colours.append(random.choice([colour for colour in load_words("colours") if colour not in colours[-1:]]))
        lines = [Line(wording.say(random, "change", colour=colour)) for colour in colours]
        lines.append(Line(wording.say(random, "question"), ideal=f"{colours[-1].capitalize()}.", asks=True, needs=(len(colours) - 1,)))
        facts: dict[str, Any] = {"colour": colours[-1], "told": colours}
        farewell = wording.say(random, "farewell")
        # Drawn last, so that the rest of the test is the same with and without them.
        if self.similar:
            free = [colour for colour in load_words("colours") if colour not in colours]
            free = free or [colour for colour in load_words("colours") if colour != colours[-1]]
            facts["similar"], asides = [], []
            for who in draw_people(random, self.similar):
                facts["similar"].append([who, random.choice(free)])
                asides.append(wording.say(random, "similar", who=who, colour=facts["similar"][-1][1]))
            lines = with_asides(lines, asides)
        return Script(facts=facts, lines=lines, farewell=farewell)

    def numbers(self, facts: Mapping[str, Any]) -> Mapping[str, float]:
        return count_similar(facts, "told")

    def chance(self, facts: Mapping[str, Any]) -> float:
        return 1 / len(load_words("colours"))

    def guess(self, message: str) -> str | None:
        asked = Wording(self.name).read("question", message) is not None
        return f"{Random(message).choice(load_words('colours')).capitalize()}." if asked else None

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        if self.rules == "paper":
            return paper.grade_colours(facts, record)
        expected = _normalise_colour(facts["colour"])
        others = {who: _normalise_colour(colour) for who, colour in facts.get("similar", ())}
        answered, quotes = _find_answer(record.answer.reply, facts)
        verdict = ": it hedges" if len(answered) > 1 else ""
        if whose := [who for who, colour in others.items() if colour in answered]:
            verdict += f", which is the favourite of the user's {join_some(whose, 3)}"
        return Grade(
            score=float(answered == [expected]),
            reason=f"expected {facts['colour']}, the reply settles on {join_some(answered) or 'no colour'}{verdict}{quote_clauses(quotes)}",
            turns=(record.answer.turn,),
        )


def _find_answer(reply: str, facts: Mapping[str, Any]) -> SettledValues:
    """Return the colours that the reply gives for the user, in a uniform spelling, with the clauses that decided it."""
    known = load_words("colour_words")
    candidates = [*known["colours"], *known["spellings"], facts["colour"], *facts.get("told", ())]
    whose = user_names([*load_words("people"), *(who for who, _ in facts.get("similar", ()))])
    settled = Reading(_drop_descriptions(reply, frozenset(candidates))).of(Values(candidates, forms=False), whose)
    settled = settled if settled.values else Reading(reply).of(Values(candidates, forms=False), whose)
    return SettledValues(list(dict.fromkeys(_normalise_colour(colour) for colour in settled.values)), settled.quotes)


def _drop_descriptions(reply: str, colours: frozenset[str]) -> str:
    """Return `reply` without colours that only describe another ("a mix of blue and green", "a blue-green shade", ", a pale blue")."""
    return _descriptions(colours).sub(" ", reply) if " " in reply else reply  # a description has several words


@lru_cache(maxsize=100)
def _descriptions(colours: frozenset[str]) -> re.Pattern[str]:
    longest_first = sorted(colours, key=lambda colour: (-len(colour), colour))
    one = "(?:" + "|".join(re.escape(colour).replace(r"\ ", "[ -]") for colour in longest_first) + r")(?:ish)?\b"
    likened = r"(?:mix(?:ture)?|blend|cross|combination|hint|touch|dash|shade|tint|hue|tone|between|next to|close to|similar to)"
    few = r"(?:[\w-]{1,20} ){0,3}?"
    several = rf"{few}{one}(?:(?:, | and | & |/|-){few}{one}){{0,4}}"
    return re.compile(
        rf"\b{likened} (?:of |between |to )?{several}"
        rf"|\ban? {few}{one}(?:-{one})? (?:shade|tint|hue|tone|colou?r)\b"
        rf"|(?<=[,;–—(]) ?an? {several}",
        re.IGNORECASE,
    )


def _normalise_colour(colour: str) -> str:
    colour = plain(colour)
    return plain(load_words("colour_words")["spellings"].get(colour, colour))
