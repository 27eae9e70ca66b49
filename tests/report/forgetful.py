"""A scenario whose needles lie anywhere in the span, and agents whose memory is known: what a report must find out about it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import Any, ClassVar

from longspan.agents.base import BaseAgent
from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.contract.graded_record import Exchange, Grade, Record
from longspan.simulator.contract.messages import Message, Reply
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import LAST, Line, Script

WINDOW = 900
"""Tokens after which `Window` forgets."""


class Codes(Scenario):
    """Gives a door's code, which may have changed at any place of the span, and asks for it."""

    name: ClassVar[str] = "codes"
    skills: ClassVar[tuple[Skill, ...]] = ("recall",)

    def make(self, random: Random) -> Script:
        door, first, last = (random.randrange(10_000, 100_000) for _ in range(3))
        return Script(
            facts={"code": str(last)},
            lines=[
                Line(f"The code of door {door} is {first}.", at=0.0),
                Line(f"The code of door {door} is {last}.", at=random.uniform(0.02, 0.85)),
                Line(f"What is the code of door {door}?", ideal=str(last), asks=True, needs=(1,), at=LAST),
            ],
        )

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        return Grade(score=float(facts["code"] in record.answer.reply), reason="as expected or not")


class Parts(Scenario):
    """Gives the three digits of a lock at three places of the span, and asks for all of them; or gives one digit three times."""

    name: ClassVar[str] = "parts"
    skills: ClassVar[tuple[Skill, ...]] = ("recall",)

    same: bool = False

    def make(self, random: Random) -> Script:
        lock, digits = random.randrange(10_000, 100_000), random.sample(range(1, 10), 3)
        digits = digits[:1] * 3 if self.same else digits
        at = random.uniform(0.05, 0.85)  # of the one that decides, so that its distances are even
        places = sorted([at, *(random.uniform(0.02, at) if self.same else random.uniform(at, 0.85) for _ in digits[1:])])
        told = [
            Line(f"Digit {1 if self.same else number} of lock {lock} is {digit}.", at=place)
            for number, (digit, place) in enumerate(zip(digits, places, strict=True), 1)
        ]
        opening = Line(f"There is a lock {lock}.", needle=False, at=0.0)
        question = Line(f"What are the digits of lock {lock}?", ideal=str(digits), asks=True, at=LAST)
        return Script(facts={"digits": sorted(set(digits))}, lines=[opening, *told, question])

    def needed(self, facts: Mapping[str, Any], number: int, question: str, needles: Sequence[Exchange]) -> Sequence[Collection[int]]:
        return [range(len(needles))] if self.same else super().needed(facts, number, question, needles)

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        right = sorted(map(int, re.findall(r"\d", record.answer.reply))) == facts["digits"]
        return Grade(score=float(right), reason="as expected or not")


class Window(BaseAgent):
    """Knows every code and digit that it was told no more than `limit` tokens ago."""

    limit: ClassVar[int] = WINDOW

    def __init__(self) -> None:
        super().__init__()
        self._count = Tokenizer().count
        self._tokens = 0
        self._codes: dict[str, tuple[str, int]] = {}
        self._digits: dict[tuple[str, str], tuple[str, int]] = {}

    async def observe(self, message: Message, reply: str) -> None:
        self._tokens += self._count(message.text) + self._count(reply)

    async def reply(self, message: Message) -> Reply:
        reply = self._answer(message)
        self._tokens += self._count(reply)
        return Reply(reply)

    def _answer(self, message: Message) -> str:
        begin = self._tokens
        self._tokens += self._count(message.text)
        if told := re.search(r"code of door (\d+) is (\d+)", message.text):
            self._codes[told[1]] = told[2], self._tokens
        elif asked := re.search(r"code of door (\d+)\?", message.text):
            code, end = self._codes[asked[1]]
            return code if begin - end <= self.limit else "I do not know."
        elif told := re.search(r"Digit (\d) of lock (\d+) is (\d)", message.text):
            self._digits[told[2], told[1]] = told[3], self._tokens
        elif asked := re.search(r"digits of lock (\d+)\?", message.text):
            known = [digit for (lock, _), (digit, end) in self._digits.items() if lock == asked[1] and begin - end <= self.limit]
            return ", ".join(known) or "I do not know."
        return "OK."


class ThreeThousand(Window):
    limit = 3_000


class TwelveThousand(Window):
    limit = 12_000


class Hollow(BaseAgent):
    """Stores nothing, and says so."""

    async def reply(self, message: Message) -> Reply:
        return Reply("OK.", trace={"written": [], "read": []})


class Recent(BaseAgent):
    """Repeats the message before the last, and tells that its prompt has the last five turns. It has no memory to tell of."""

    def __init__(self) -> None:
        super().__init__()
        self._turns: list[Message] = []

    async def observe(self, message: Message, reply: str) -> None:
        self._turns.append(message)

    async def reply(self, message: Message) -> Reply:
        self._turns.append(message)
        return Reply(self._turns[-2:][0].text, trace={"recent": {"since": self._turns[-5:][0].turn_id}})
