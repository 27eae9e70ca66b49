"""A core without its model, for estimates: it gives prepared replies and counts the tokens that a request would have used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

from longspan.agents.base import Usage
from longspan.agents.models.core import ChatMessage, Completion, Core

__all__ = ["DryCore"]

EMPTY_OBJECT = "{}"
"""The answer to a request for JSON: no notes and no queries."""


@final
class DryCore:
    """A stand-in for `core`. `reply` is its next answer.

    Messages at the start that a request shares with the previous one count as read from the provider's cache.
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
        shared = next((at for at, pair in enumerate(zip(messages, self._previous, strict=False)) if pair[0] != pair[1]), None)
        cached = sum(sizes[: min(len(messages), len(self._previous)) if shared is None else shared])
        self._previous = tuple(messages)
        text = EMPTY_OBJECT if schema is not None else self.reply
        return Completion(text, Usage(sum(sizes), cached, self.count(text)))
