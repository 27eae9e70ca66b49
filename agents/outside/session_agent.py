"""The common base of agents outside that keep a conversation themselves, and get only the newest message."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from longspan.agents.base import Message, Reply
from longspan.agents.models.core import stamp_message
from longspan.agents.models.stateful import ServerPoint
from longspan.agents.outside.counts import drop_reply
from longspan.agents.outside.remote import OutsideAgent, RemoteOptions

__all__ = ["OutsideSessionAgent", "SessionOptions"]


class SessionOptions(RemoteOptions):
    """The options of such an agent."""

    timestamps: bool = True
    """Each message begins with its virtual date and time."""


class OutsideSessionAgent(OutsideAgent):
    """An agent that keeps the conversation. It cannot return to an earlier state, and answers turns that it should only read.

    `point` names the conversation, once it has begun.
    """

    has_snapshots = observes = repeatable = False
    lacks: ClassVar[str] = "only its present state"

    def __init__(self, target: str, settings: SessionOptions, name: str) -> None:
        super().__init__(target, settings, name)
        self._timestamps = settings.timestamps
        self.point = ServerPoint()

    async def observe(self, message: Message, reply: str) -> Reply:
        answered = await self.reply(message)
        return replace(drop_reply(answered), trace=self.point.trace)

    async def rejoin(self, message: Message, reply: Reply) -> bool:
        """Continue the conversation after a turn, if its trace names it. Raises AgentError if it cannot be continued."""
        point = ServerPoint.of(message, reply)
        self.point = point or self.point
        return point is not None

    async def reset(self) -> None:
        self.point = ServerPoint()

    def display(self, message: Message) -> str:
        """Return a message as the agent gets it."""
        return stamp_message(message.text, message.sent_at) if self._timestamps else message.text
