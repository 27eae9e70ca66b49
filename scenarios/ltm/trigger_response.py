"""Trigger response (GoodAI, section 3.2): tell the agent what to say whenever something happens; later it happens often."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any, ClassVar, Final, final

from pydantic import Field

from longspan.scenarios.ltm import paper_rules as paper
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.base.words import plain
from longspan.simulator.contract.graded_record import Grade, Record
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Line, Script
from longspan.simulator.reading.matching import found_words, join_some
from longspan.simulator.reading.replies.reading import Reading
from longspan.simulator.reading.replies.values import says_nearly

__all__ = ["TriggerResponse"]


_UNSAID: Final = re.compile(r"\b(?:not|never|refuse to|decline to) (?:\w+ )?(?:say|saying|repeat|answer|reply|write|use)\b")
"""Words that refuse to say a phrase."""


@final
class TriggerResponse(Scenario):
    """State a rule: whenever the user mentions something, answer with a phrase. Then mention it `triggers` times.

    Each trigger is an everyday remark in words other than the rule's. It earns an equal share of the score if the reply contains the
    phrase, whatever else it says. A reply that also contains another rule's phrase scores nothing, because the agent confuses the rules.
    The questions are spread over the span, so there are no needles to place early.
    """

    name: ClassVar[str] = "trigger_response"
    skills: ClassVar[tuple[Skill, ...]] = ("conflicting information", "prospective memory")
    topics: ClassVar[frozenset[str]] = frozenset({"trigger"})
    early: ClassVar[bool] = False

    triggers: int = Field(default=3, ge=1, le=50)
    rules: paper.Rules = "longspan"

    def make(self, random: Random) -> Script:
        wording = Wording(self.name)
        rule = random.choice(load_words("triggers"))
        # The phrase is drawn separately, so that a trigger does not reveal it.
        when, phrase = rule["when"], random.choice(load_words("triggers"))["phrase"]
        lines = [Line(wording.say(random, "instruction", when=when, phrase=phrase))]
        remarks = _remarks(random, wording.all(rule["situation"]), self.triggers)
        lines += [Line(remark, ideal=f"{phrase}.", asks=True, needs=(0,)) for remark in remarks]
        return Script(
            facts={"when": when, "phrase": phrase, "triggers": self.triggers},
            lines=lines,
            farewell=wording.say(random, "farewell", when=when),
        )

    def chance(self, facts: Mapping[str, Any]) -> float:
        return 1 / len(load_words("triggers"))

    def guess(self, message: str) -> str | None:
        """Return a random phrase if the message can be a trigger. The triggering rule says nothing about its phrase."""
        rules, wording = load_words("triggers"), Wording(self.name)
        fires = any(message in wording.all(rule["situation"]) for rule in rules)
        return f"{Random(message).choice(rules)['phrase']}." if fires else None

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        if self.rules == "paper":
            return paper.trigger_response(facts, record)
        phrase = facts["phrase"]
        phrases = dict.fromkeys([phrase, *(rule["phrase"] for rule in load_words("triggers") if plain(rule["phrase"]) != plain(phrase))])
        phrases_said = [_find_said(answer.reply, phrase, phrases) for answer in record.answers]
        right = sum(said == [phrase] for said in phrases_said)
        return Grade(
            score=right / max(facts["triggers"], len(phrases_said)),
            reason=f'expected "{phrase}" at each of {facts["triggers"]} triggers, {join_some(_verdicts(phrase, phrases_said))}',
            turns=tuple(answer.turn for answer in record.answers),
        )


def _remarks(random: Random, choices: Sequence[str], count: int) -> list[str]:
    """Draw `count` of the choices, all equally often and never the same one twice in a row."""
    remarks: list[str] = []
    while len(remarks) < count:
        shuffled = random.sample(choices, len(choices))
        remarks += shuffled if shuffled[:1] != remarks[-1:] else shuffled[::-1]
    return remarks[:count]


def _verdicts(phrase: str, phrases_said: list[list[str]]) -> list[str]:
    """Return a verdict on each reply, given the phrases in it."""
    return [f"{_verdict(phrase, said)} at trigger {number}" for number, said in enumerate(phrases_said, 1)] or ["but none was played"]


def _find_said(reply: str, phrase: str, phrases: Iterable[str]) -> list[str]:
    """Return the phrases that a reply says, ignoring those that it quotes only to refuse them ("I won't say ...")."""
    found = found_words(reply, phrases) or [phrase] * says_nearly(reply, phrase)
    around = [clause.text.replace(plain(phrase), " ") for clause in Reading(reply).clauses if plain(phrase) in clause.text]
    return [] if around and all(map(_UNSAID.search, around)) else found


def _verdict(phrase: str, said: list[str]) -> str:
    if phrase in said:
        return "said with another phrase" if len(said) > 1 else "said"
    return "another phrase said" if said else "not said"
