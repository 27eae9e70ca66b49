"""The equipment of a model that uses tools: the tools, and somebody who runs them. It knows neither models nor servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from longspan.agents.models.core import Tool

__all__ = ["ToolResult", "Toolbox"]


class ToolResult(NamedTuple):
    """A tool's result, as text. `failed`: the text is an error."""

    text: str
    failed: bool = False


class Toolbox(Protocol):
    """Tools that a model may call."""

    name: str
    """For errors."""
    tools: Sequence[Tool]
    instructions: str
    """What its maker says about all of them."""

    def reads(self, name: str) -> bool:
        """Return whether a tool only reads: it stores nothing."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Call a tool. A tool's own error is its result. Raises AgentError if no tool can be called any more."""
        ...
