"""The interface between a model that calls tools and the code that runs them. It depends on neither."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from longspan.agents.models.core import Tool

__all__ = ["ToolResult", "Toolbox"]


class ToolResult(NamedTuple):
    """A tool's result as text. `failed`: the text is an error."""

    text: str
    failed: bool = False


class Toolbox(Protocol):
    """Tools that a model may call."""

    name: str
    """The name in errors."""
    tools: Sequence[Tool]
    instructions: str
    """The maker's instructions for all tools."""

    def reads(self, name: str) -> bool:
        """Return whether a tool only reads and stores nothing."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Call a tool. A tool's own error is returned as its result. Raises AgentError if tools can no longer be called."""
        ...
