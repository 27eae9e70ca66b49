"""Agents whose memory for colours is known in closed form: what similar facts do to them must be found out."""

from __future__ import annotations

import re
from random import Random
from typing import ClassVar

from longspan.agents.base import BaseAgent
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.contract.messages import Message, Reply
from longspan.simulator.reading.matching import found_words

P = 0.1
"""The probability that `Sometimes` takes another's colour for the user's. What it makes of a message depends on its words alone."""


class _Colours(BaseAgent):
    """Remembers one colour. Each other person's colour replaces it with probability `p`; what the user likes always does."""

    p: ClassVar[float]

    def __init__(self) -> None:
        super().__init__()
        self._colour = "no colour"

    async def observe(self, message: Message, reply: str) -> None:
        """Filler tells nothing that it keeps."""

    async def reply(self, message: Message) -> Reply:
        if message.text.endswith("?"):
            return Reply(f"{self._colour.capitalize()}.")
        if told := found_words(message.text, load_words("colours")):
            others = re.search(r"\bmy (?!favourite)[\w-]+(?: \w+)?(?:'s|\b)", message.text, re.IGNORECASE) is not None
            if not others or Random(message.text).random() < self.p:
                self._colour = told[0]
        return Reply("OK.")


class Newest(_Colours):
    """Answers with the newest colour of anybody."""

    p = 1.0


class Keeps(_Colours):
    """Keeps whose colour it is."""

    p = 0.0


class Sometimes(_Colours):
    """Is confused by one in ten similar facts."""

    p = P
