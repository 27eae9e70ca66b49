"""silent: says "OK." to everything. What it scores, a test gives away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from longspan.agents.base import BaseAgent, Message, Reply

__all__ = ["Silent"]


@final
class Silent(BaseAgent):
    """Keeps nothing, and always answers "OK."."""

    @property
    def models(self) -> Mapping[str, str]:
        """None: it costs nothing."""
        return {}

    async def reply(self, message: Message) -> Reply:
        return Reply("OK.")
