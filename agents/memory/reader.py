"""An answerer without a language model. It answers from the memories found as the agent `notebook` does from its notes.

Its scores compare memories at no cost: the same words found give the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, final

from longspan.agents.base import Message
from longspan.agents.memory.answerer import MemoryAnswer
from longspan.agents.memory.memory import MemoryItem
from longspan.agents.memory.turns import message_in
from longspan.agents.models.core import clean_unicode
from longspan.agents.reference.notebook import Notebook
from longspan.simulator.subject.ledger import Rates

__all__ = ["WORDS", "Reader"]

WORDS: Final = "words"
"""The value of the option `answerer` that selects it."""


@final
class Reader:
    """A reader that enters memories into a notebook, oldest first, and answers from it."""

    models: Mapping[str, str | Rates] = {}
    """No models: it is free."""

    def __init__(self) -> None:
        self._notebook = Notebook()
        self._open: list[MemoryItem] = []

    async def answer(self, message: Message, items: Sequence[MemoryItem], *, whole: bool) -> MemoryAnswer:
        """Return the answer to a message, without keeping the message."""
        await self._read(items if whole else sorted(items, key=_date, reverse=True)[::-1])  # the best of equal dates is read last
        await self._notebook.mark()
        reply = await self._notebook.reply(Message(clean_unicode(message.text), message.sent_at, message.turn_id))
        await self._notebook.rewind()
        return MemoryAnswer(reply.text, items, {})

    async def _read(self, items: Sequence[MemoryItem]) -> None:
        """Read memories, reusing those already read for the previous message."""
        if self._open != list(items[: len(self._open)]):
            self._open = []
            await self._notebook.reset()
        for number, item in enumerate(items[len(self._open) :], len(self._open)):
            said = Message(message_in(clean_unicode(item.text)), _date(item), f"item/{number}")
            await self._notebook.observe(said, "")
        self._open = list(items)


def _date(item: MemoryItem) -> datetime:
    return item.at or datetime.min
