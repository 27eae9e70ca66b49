"""The agent that gives the ideal reply to each message. Its scores are the maximum that tests allow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from longspan.agents.base import AgentError, AgentOptions, MemorylessAgent, Message, Reply

__all__ = ["Oracle"]


@final
class Oracle(MemorylessAgent):
    """Answers with the ideal reply, which the engine gives it, and no other kind of agent, before each request."""

    @classmethod
    def danger(cls, target: str, options: Mapping[str, str]) -> None:
        """Return None: it is harmless."""

    @property
    def models(self) -> Mapping[str, str]:
        """No models: it is free."""
        return {}

    def __init__(self, target: str = "", options: AgentOptions | None = None) -> None:
        super().__init__(target, options)
        self._ideal: str | None = None
        self._last: tuple[str, str] | None = None

    def prompt(self, ideal: str) -> None:
        """Set the next reply."""
        self._ideal = ideal

    async def reply(self, message: Message) -> Reply:
        """Return the ideal reply. A repeated turn gets the same reply. Raises AgentError if no reply was set."""
        if self._ideal is not None:
            self._last = (message.turn_id, self._ideal)
            self._ideal = None
        if self._last is None or self._last[0] != message.turn_id:
            raise AgentError(f"oracle has no ideal reply for turn {message.turn_id}")
        return Reply(self._last[1])

    async def reset(self) -> None:
        self._ideal = self._last = None
