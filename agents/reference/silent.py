"""The agent that says "OK." to everything. Points that it scores come free with the tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from longspan.agents.base import MemorylessAgent, Message, Reply

__all__ = ["Silent"]


@final
class Silent(MemorylessAgent):
    """Remembers nothing and always answers "OK."."""

    @classmethod
    def danger(cls, target: str, options: Mapping[str, str]) -> None:
        """Return None: it is harmless."""

    @property
    def models(self) -> Mapping[str, str]:
        """No models: it is free."""
        return {}

    async def reply(self, message: Message) -> Reply:
        return Reply("OK.")
