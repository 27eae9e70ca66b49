"""What one reply took: the core's calls, counted, and what went wrong in those that may."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, final

from longspan.agents.base import AgentError, Usage
from longspan.agents.models.core import ChatMessage, Completion, Core, clean

__all__ = ["Calls"]

Purpose = Literal["reply", "queries", "notes"]


@final
@dataclass(slots=True)
class Calls:
    """The calls of `core` for one reply, in order, as its trace will tell of them."""

    core: Core
    usage: Usage = field(default_factory=Usage)
    made: list[dict[str, Any]] = field(default_factory=list)

    async def reply(self, messages: Sequence[ChatMessage]) -> Completion:
        """The answer to the user. Raises AgentError, ContextOverflowError where the prompt is too long."""
        completion = await self.core.complete(messages)
        self._note("reply", completion.usage)
        return completion._replace(text=clean(completion.text))

    async def inner(self, purpose: Purpose, messages: Sequence[ChatMessage]) -> str | None:
        """The answer to a prompt of the agent's own; None where it failed: the turn goes on without it."""
        try:
            completion = await self.core.complete(messages)
        except AgentError as error:
            self._note(purpose, Usage())
            self.problem(str(error))
            return None
        self._note(purpose, completion.usage)
        return clean(completion.text)

    def problem(self, what: str) -> None:
        """Tell what was wrong with the answer to the last call."""
        self.made[-1]["problem"] = what[:300]

    def _note(self, purpose: Purpose, usage: Usage) -> None:
        self.made.append({"for": purpose, "usage": asdict(usage)})
        self.usage = Usage(
            self.usage.input_tokens + usage.input_tokens,
            self.usage.cached_tokens + usage.cached_tokens,
            self.usage.output_tokens + usage.output_tokens,
        )
