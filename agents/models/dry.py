"""A core without its model, for estimates: it gives prepared replies and counts the tokens that a request would have used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, final

from longspan.agents.base import Usage
from longspan.agents.models.core import ChatMessage, Completion, Core, costs_nothing

__all__ = ["DryCore"]

EMPTY_OBJECT = "{}"
"""The answer to a request for JSON: no notes and no queries."""


@final
class DryCore:
    """A stand-in for `core`. `reply` is its next answer.

    Messages at the start that a request shares with the previous one count as read from the provider's cache. The cache of a model in this
    process also has the start of a message that differs.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self.priced_as = core.priced_as
        self.name, self.overhead, self.window, self.max_output = core.name, core.overhead, core.window, core.max_output
        self.reply = "OK."
        self._previous: Sequence[ChatMessage] = ()

    def count(self, text: str) -> int:
        return self._core.count(text)

    async def complete(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        sizes = [self.count(message.text) + self.overhead for message in messages]
        cached = 0
        for message, previous, size in zip(messages, self._previous, sizes, strict=False):
            if message != previous:
                if costs_nothing(self):
                    alike = takewhile(lambda pair: pair[0] == pair[1], zip(message.text, previous.text, strict=False))
                    cached += self.count("".join(character for character, _ in alike))
                break
            cached += size
        self._previous = tuple(messages)
        text = EMPTY_OBJECT if schema is not None else self.reply
        return Completion(text, Usage(sum(sizes), cached, self.count(text)))
