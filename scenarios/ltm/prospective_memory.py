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
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.contract.graded_record import Grade, Record
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Script, Segment
from longspan.simulator.contract.stage import Stage
from longspan.simulator.reading.matching import contains_nearly

__all__ = ["ProspectiveMemory", "outline_test"]

INSTRUCTED_AT = 0.9
"""Position of the instruction as a share of the span. The nth reply comes after the span."""
_CONTRACTED: Final = re.compile(r"(?<=\w)['\u2019]s\b")
"""The end of "that's", which is a separate word in "that has"."""
MAX_OTHERS = 1
"""Number of other quotations that may accompany the right one, since an earlier test may have asked for one."""


@final
class ProspectiveMemory(Scenario):
    """State a quotation, and near the end of the span ask the agent to append it to its nth reply, `least` <= n <= `most`.

    The reply to the instruction is the first. The reply after the nth is watched too, to check that the agent stops.
    """

    name: ClassVar[str] = "prospective_memory"
    skills: ClassVar[tuple[Skill, ...]] = ("prospective memory",)
    topics: ClassVar[frozenset[str]] = frozenset({"quotation"})

    least: int = Field(default=2, ge=2, le=100)
    most: int = Field(default=8, ge=2, le=100)
    rules: paper.Rules = "longspan"

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.least > self.most:
            raise ValueError(f"least must be <= most, got {self.least} and {self.most}")
        return self

    def make(self, random: Random) -> Script:
        wording = Wording(self.name)
        saying = random.choice(load_words("quotations"))
        nth = random.randint(self.least, self.most)
        telling = wording.say(random, "telling", **saying)
        instruction = wording.say(random, "instruction", author=saying["author"], nth=_ordinal(nth))
        return Script(
            facts={**saying, "nth": nth, "telling": telling, "instruction": instruction},
            outline=outline_test(telling, instruction, nth),
            farewell=wording.say(random, "farewell"),
        )

    def chance(self, facts: Mapping[str, Any]) -> float:
        """Return the score of adding quotations from the list to one reply in six, since no message gives a reason to."""
        return (1 + MAX_OTHERS) / len(load_words("quotations")) * (1 / 6) * (5 / 6) ** int(facts["nth"])

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
            pass  # watching records the turns; `grade` evaluates them

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        """Score 1 if the quotation is in the nth reply and in no other reply seen, else 0.

        `facts` needs `quotation` and `nth`. The author need not be named, and the quotation need not come last. One word in eight may be
        missing, added or changed. A reply that contains more than MAX_OTHERS other quotations does not count as quoting. The paper's
        rules allow no change and any number of other quotations. The score is None if the conversation was interrupted before the nth
        reply without any error.
        """
        nth = facts["nth"]
        seen = [record.answer, *record.watched]
        contains = paper.contains_quotation if self.rules == "paper" else _quotes
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
    """Return whether `reply` contains too many other quotations from the list to be evidence of remembering this one."""
    others = (saying["quotation"] for saying in load_words("quotations") if saying["quotation"] != quotation)
    found = (other for other in others if contains_nearly(reply, other))
    return len(list(islice(found, MAX_OTHERS + 1))) > MAX_OTHERS


def outline_test(telling: str, instruction: str, nth: int) -> list[Segment]:
    """Return the outline of a test for planning: both messages, nine tenths of the span apart, and `nth` more turns to watch."""
    return [Segment(0, _max_tokens(telling), 1), Segment(INSTRUCTED_AT, _max_tokens(instruction), 1, watch=nth)]


def _reason(nth: int, quoting: Sequence[int], seen: int) -> str:
    where = "in the " + " and ".join(map(_ordinal, quoting)) if quoting else "in none"
    return f"expected the quotation in the {_ordinal(nth)} reply only, found it {where} of the {seen} replies seen"


def _ordinal(number: int) -> str:
    """Return an ordinal: 1st, 2nd, 3rd, 4th, ..., 11th, ..., 21st."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _max_tokens(text: str) -> int:
    """Return an upper bound for the tokens of `text` in any common tokenizer. English has over four letters a token."""
    return len(text) // 3 + 5
