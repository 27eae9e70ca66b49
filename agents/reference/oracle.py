"""oracle: given the ideal reply to each message. What it does not score, cannot be scored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from longspan.agents.base import AgentError, AgentOptions, BaseAgent, Message, Reply

__all__ = ["Oracle"]


@final
class Oracle(BaseAgent):
    """Answers with the ideal reply, which the engine hands to it, and to no other kind of agent, before each request."""

    @property
    def models(self) -> Mapping[str, str]:
        """None: it costs nothing."""
        return {}

    def __init__(self, target: str = "", options: AgentOptions | None = None) -> None:
        super().__init__(target, options)
        self._ideal: str | None = None
        self._last: tuple[str, str] | None = None

    def prompt(self, ideal: str) -> None:
        """The next reply is to be `ideal`."""
        self._ideal = ideal

    async def reply(self, message: Message) -> Reply:
        """The ideal reply. Raises AgentError where none was handed over; a turn asked again gets the same reply again."""
        if self._ideal is not None:
            self._last = (message.turn_id, self._ideal)
            self._ideal = None
        if self._last is None or self._last[0] != message.turn_id:
            raise AgentError(f"oracle was asked turn {message.turn_id} without being given its ideal reply")
        return Reply(self._last[1])

    async def reset(self) -> None:
        self._ideal = self._last = None
