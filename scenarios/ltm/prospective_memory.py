"""Prospective memory (GoodAI, section 3.2, "Quotes"): append a quotation to the nth reply from now and to no other."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from random import Random
from typing import Any, ClassVar, Final, Self, final

from pydantic import Field, model_validator

from longspan.scenarios.ltm import paper_rules as paper
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.lists import words
from longspan.simulator.contract.graded_record import Grade, Record
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Script, Segment
from longspan.simulator.contract.stage import Stage
from longspan.simulator.grading.matching import contains_nearly

__all__ = ["ProspectiveMemory", "outline"]

INSTRUCTED_AT = 0.9
"""The instruction is given after this share of the span. The nth reply comes after the span."""
_CONTRACTED: Final = re.compile(r"(?<=\w)['\u2019]s\b")
"""The end of "that's", which is a word of its own for whoever wrote "that has"."""
MAX_OTHERS = 1
"""How many other quotations may stand beside the right one: an earlier test may have asked for one."""


@final
class ProspectiveMemory(Scenario):
    """A quotation is told; near the end of the span the agent is asked to append it to its nth reply, `least` <= n <= `most`.

    The reply to the instruction is the 1st. One reply after the nth is watched too, to check that the agent stops.
    """

    name: ClassVar[str] = "prospective_memory"
    skills: ClassVar[tuple[Skill, ...]] = ("prospective memory",)
    topics: ClassVar[frozenset[str]] = frozenset({"quotation"})

    least: int = Field(default=2, ge=2, le=100)
    most: int = Field(default=8, ge=2, le=100)
    rules: paper.Rules = "longspan"

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.least > self.most:
            raise ValueError(f"least must be <= most, got {self.least} and {self.most}")
        return self

    def make(self, random: Random) -> Script:
        wording = Wording(self.name)
        saying = random.choice(words("quotations"))
        nth = random.randint(self.least, self.most)
        telling = wording.say(random, "telling", **saying)
        instruction = wording.say(random, "instruction", author=saying["author"], nth=_ordinal(nth))
        return Script(
            facts={**saying, "nth": nth, "telling": telling, "instruction": instruction},
            outline=outline(telling, instruction, nth),
            farewell=wording.say(random, "farewell"),
        )

    def chance(self, facts: Mapping[str, Any]) -> float:
        """Return the score of quoting some quotations of the list in one reply out of six. No message gives cause to."""
        return (1 + MAX_OTHERS) / len(words("quotations")) * (1 / 6) * (5 / 6) ** int(facts["nth"])

    async def play(self, stage: Stage) -> None:
        facts = stage.facts
        nth = facts["nth"]

        def amend(count: int, ideal: str) -> str:
            # the first watched turn has the 2nd reply
            return f'{ideal}\n"{facts["quotation"]}" - {facts["author"]}' if count == nth - 1 else ideal

        await stage.say(facts["telling"])
        await stage.wait()
        await stage.ask(facts["instruction"], needs=[0], ideal="OK.")
        async for _ in stage.watch(turns=nth, amend=amend):
            pass  # watched turns are recorded, and `grade` decides

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        """Score 1 if the quotation is in the nth reply and in no other reply seen, else 0.

        `facts` needs `quotation` and `nth`. The author need not be named, and the quotation need not come last. One word in
        eight may be missing, added or changed. A reply that recites more than MAX_OTHERS other quotations besides quotes none.
        The paper's rules allow no change and any recital. The score is None if the conversation was interrupted before the nth
        reply and nothing was wrong until then.
        """
        nth = facts["nth"]
        seen = [record.answer, *record.watched]
        contains = paper.quotes if self.rules == "paper" else _quotes
        quoting = [count for count, exchange in enumerate(seen, 1) if contains(exchange.reply, facts["quotation"])]
        interrupted = len(seen) < nth and not quoting
        return Grade(
            score=None if interrupted else float(quoting == [nth]),
            reason=_reason(nth, quoting, len(seen)),
            turns=tuple(exchange.turn for count, exchange in enumerate(seen, 1) if count == nth or count in quoting),
        )


def _quotes(reply: str, quotation: str) -> bool:
    quoted = contains_nearly(reply, quotation) or contains_nearly(*(_CONTRACTED.sub(" s", text) for text in (reply, quotation)))
    return quoted and not _recites(reply, quotation)


def _recites(reply: str, quotation: str) -> bool:
    """Return whether `reply` has so many other quotations of the list that it is no sign of having been told this one."""
    others = (saying["quotation"] for saying in words("quotations") if saying["quotation"] != quotation)
    found = (other for other in others if contains_nearly(reply, other))
    return len(list(islice(found, MAX_OTHERS + 1))) > MAX_OTHERS


def outline(telling: str, instruction: str, nth: int) -> list[Segment]:
    """Return the outline of a test, for planning: both messages, nine tenths of the span apart; `nth` more turns are watched."""
    return [Segment(0, _max_tokens(telling), 1), Segment(INSTRUCTED_AT, _max_tokens(instruction), 1, watch=nth)]


def _reason(nth: int, quoting: Sequence[int], seen: int) -> str:
    where = "in the " + " and ".join(map(_ordinal, quoting)) if quoting else "in none"
    return f"expected the quotation in the {_ordinal(nth)} reply only, found it {where} of the {seen} replies seen"


def _ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, ..., 11th, ..., 21st"""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _max_tokens(text: str) -> int:
    """Return a number of tokens that `text` does not exceed in any usual tokenizer: English has over four letters a token."""
    return len(text) // 3 + 5
