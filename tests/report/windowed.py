"""An agent that recalls every plain fact up to a distance."""

from __future__ import annotations

from typing import final

from longspan import Message
from tests.scenarios.reach.planted import Planted

__all__ = ["Windowed"]


@final
class Windowed:
    """Keeps what was said up to `tokens` ago."""

    def __init__(self, tokens: str = "600") -> None:
        self._planted = Planted(lambda said: said.tokens <= int(tokens))

    def reply(self, message: Message) -> str:
        return self._planted.reply(message)

    def observe(self, message: Message, reply: str) -> None:
        self._planted.observe(message, reply)
