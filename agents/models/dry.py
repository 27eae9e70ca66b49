"""A core without its model: it says what it is told to, and counts what asking would have taken. For estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

from longspan.agents.base import Usage
from longspan.agents.models.core import ChatMessage, Completion, Core

__all__ = ["DryCore"]

INNER = "{}"
"""What it answers where JSON is wanted: nothing to note, nothing to look for."""


@final
class DryCore:
    """Stands in for `core`. `reply` is what it says next. The prefix that a request shares with the one before, whole
    messages of it, counts as read from the provider's cache."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.name, self.overhead, self.window, self.most_output = core.name, core.overhead, core.window, core.most_output
        self.reply = "OK."
        self._before: Sequence[ChatMessage] = ()

    def count(self, text: str) -> int:
        return self._core.count(text)

    async def complete(
        self, messages: Sequence[ChatMessage], *, most: int | None = None, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        sizes = [self.count(message.text) + self.overhead for message in messages]
        same = next((at for at, pair in enumerate(zip(messages, self._before, strict=False)) if pair[0] != pair[1]), None)
        cached = sum(sizes[: min(len(messages), len(self._before)) if same is None else same])
        self._before = tuple(messages)
        text = INNER if schema is not None else self.reply
        return Completion(text, Usage(sum(sizes), cached, self.count(text)))
