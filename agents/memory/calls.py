"""The model calls made for one reply, with their usage and problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, final

from longspan.agents.base import AgentError, Usage
from longspan.agents.models.core import ChatMessage, Completion, Core, Cut, OnRefusal, RefusalError, as_sent, clean_unicode
from longspan.simulator.subject.prompt_log import note_prompt

__all__ = ["Calls"]

Purpose = Literal["reply", "queries", "notes"]


@final
@dataclass(slots=True)
class Calls:
    """The calls of `core` for one reply, in order, as its trace lists them.

    `refusal`: why the model refused to answer the user; None if it did not refuse.
    """

    core: Core
    usage: Usage = field(default_factory=Usage)
    records: list[dict[str, Any]] = field(default_factory=list)
    refusal: str | None = None

    async def reply(self, messages: Sequence[ChatMessage], on_refusal: OnRefusal) -> Completion:
        """Return the answer to the user. A refusal counts as an answer unless `on_refusal` is "error".

        Raises AgentError, or ContextOverflowError if the prompt is too long.
        """
        note_prompt(self.core.name, as_sent(messages))
        try:
            completion = await self.core.complete(messages)
        except RefusalError as refusal:
            if on_refusal == "error":
                raise
            completion, self.refusal = Completion(refusal.text, refusal.usage), refusal.why
        self._note("reply", completion.usage, completion.cut)
        return completion._replace(text=clean_unicode(completion.text))

    async def inner_call(self, purpose: Purpose, messages: Sequence[ChatMessage]) -> str | None:
        """Return the answer to an internal prompt; None if the call failed, since the turn can continue without it."""
        note_prompt(self.core.name, as_sent(messages), purpose)
        try:
            completion = await self.core.complete(messages)
        except AgentError as error:
            self._note(purpose, error.usage if isinstance(error, RefusalError) else Usage())
            self.problem(str(error))
            return None
        self._note(purpose, completion.usage, completion.cut)
        return clean_unicode(completion.text)

    def problem(self, text: str) -> None:
        """Record a problem with the last call's answer."""
        self.records[-1]["problem"] = text[:300]

    def _note(self, purpose: Purpose, usage: Usage, cut: Cut = "") -> None:
        self.records.append({"for": purpose, "usage": asdict(usage)} | ({"cut": cut} if cut else {}))
        self.usage = Usage(
            self.usage.input_tokens + usage.input_tokens,
            self.usage.cached_tokens + usage.cached_tokens,
            self.usage.output_tokens + usage.output_tokens,
        )
