"""A reader without a language model: it answers from the memories found, as the agent `notebook` does from its notes, by words alone.

Its scores compare memories with each other: the same words found give the same answer, at no cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, final

from longspan.agents.base import Message
from longspan.agents.memory.answerer import Answer
from longspan.agents.memory.memory import MemoryItem
from longspan.agents.memory.turns import message_in
from longspan.agents.models.core import clean
from longspan.agents.reference.notebook import Notebook
from longspan.simulator.subject.ledger import Rates

__all__ = ["WORDS", "Reader"]

WORDS: Final = "words"
"""What names it: `answerer=words`."""


@final
class Reader:
    """Reads memories, oldest first, into a notebook, and answers with what that finds in them."""

    models: Mapping[str, str | Rates] = {}
    """None: it is free."""

    def __init__(self) -> None:
        self._notebook = Notebook()
        self._open: list[MemoryItem] = []

    async def answer(self, message: Message, items: Sequence[MemoryItem], *, whole: bool) -> Answer:
        """Return the answer to a message. Nothing is kept of it."""
        await self._read(items if whole else sorted(items, key=_date, reverse=True)[::-1])  # of the same date, the best comes last
        await self._notebook.mark()
        reply = await self._notebook.reply(Message(clean(message.text), message.sent_at, message.turn_id))
        await self._notebook.rewind()
        return Answer(reply.text, items, {})

    async def _read(self, items: Sequence[MemoryItem]) -> None:
        """Read memories, unless they have been read for the message before."""
        if self._open != list(items[: len(self._open)]):
            self._open = []
            await self._notebook.reset()
        for number, item in enumerate(items[len(self._open) :], len(self._open)):
            said = Message(message_in(clean(item.text)), _date(item), f"item/{number}")
            await self._notebook.observe(said, "")
        self._open = list(items)


def _date(item: MemoryItem) -> datetime:
    return item.at or datetime.min
