"""Trigger response (GoodAI, section 3.2): whenever something happens, say so and so; later it happens, again and again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar, final

from pydantic import Field

from longspan.scenarios.ltm import paper_rules as paper
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.lists import words
from longspan.simulator.grading.matching import found_words, plain, some
from longspan.simulator.record import Grade, Record
from longspan.simulator.scenario import Scenario, Skill
from longspan.simulator.script import LAST, Line, Script

__all__ = ["TriggerResponse"]


@final
class TriggerResponse(Scenario):
    """A rule is stated: whenever the user speaks of something, answer with a phrase. Then it is spoken of `triggers` times.

    Each trigger is an everyday remark in words other than the rule's, and brings an equal share of the score when the
    reply holds the phrase, whatever stands around it. A reply that also holds the phrase of another rule shows that it
    cannot tell which is asked for: it scores nothing. Its questions are spread over the span, so that it has no needles
    to place early.
    """

    name: ClassVar[str] = "trigger_response"
    skills: ClassVar[tuple[Skill, ...]] = ("conflicting information", "prospective memory")
    topics: ClassVar[frozenset[str]] = frozenset({"trigger"})
    early: ClassVar[bool] = False

    triggers: int = Field(default=3, ge=1, le=50)
    rules: paper.Rules = "longspan"

    def make(self, random: Random) -> Script:
        wording = Wording(self.name)
        rule = random.choice(words("triggers"))
        when, phrase = rule["when"], rule["phrase"]
        lines = [Line(wording.say(random, "instruction", when=when, phrase=phrase), at=0.0)]
        for number, remark in enumerate(_remarks(random, wording.all(rule["situation"]), self.triggers), 1):
            lines.append(Line(remark, ideal=f"{phrase}.", asks=True, needs=(0,), at=LAST * number / self.triggers))
        return Script(
            facts={"when": when, "phrase": phrase, "triggers": self.triggers},
            lines=lines,
            farewell=wording.say(random, "farewell", when=when),
        )

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        if self.rules == "paper":
            return paper.trigger_response(facts, record)
        phrase = facts["phrase"]
        phrases = dict.fromkeys([phrase, *(rule["phrase"] for rule in words("triggers") if plain(rule["phrase"]) != plain(phrase))])
        said = [found_words(answer.reply, phrases) for answer in record.answers]
        right = sum(found == [phrase] for found in said)
        return Grade(
            score=right / max(facts["triggers"], len(said)),
            reason=f'expected "{phrase}" at each of {facts["triggers"]} triggers, {some(_verdicts(phrase, said))}',
            turns=tuple(answer.turn for answer in record.answers),
        )


def _remarks(random: Random, ways: Sequence[str], count: int) -> list[str]:
    """`count` of the ways, each as often as the others and never the same twice running."""
    remarks: list[str] = []
    while len(remarks) < count:
        round_ = random.sample(ways, len(ways))
        remarks += round_ if round_[:1] != remarks[-1:] else round_[::-1]
    return remarks[:count]


def _verdicts(phrase: str, said: list[list[str]]) -> list[str]:
    """What each reply did, given the phrases that it holds."""
    return [f"{_verdict(phrase, held)} at number {number}" for number, held in enumerate(said, 1)] or ["but none was played"]


def _verdict(phrase: str, held: list[str]) -> str:
    if phrase in held:
        return "said among others" if len(held) > 1 else "said"
    return "another said" if held else "not said"
