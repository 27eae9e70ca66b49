"""The speed of reading and writing of a model in this process, measured with one prompt and one answer."""

from __future__ import annotations

from time import monotonic
from typing import Final

from longspan.agents.models.core import ChatMessage, Core, costs_nothing
from longspan.simulator.contract.agent import Pace

__all__ = ["pace_of"]

SHIPS: Final = " ".join(f"Ship {number} brought {number * 37 % 100} crates from port {number * 53 % 90}." for number in range(1, 25))

PROMPT: Final = f"{SHIPS} Tell a long story about these ships."
"""A few hundred tokens that ask for a long answer."""

WRITTEN: Final = 24
"""The tokens timed of the answer."""


async def pace_of(core: Core) -> Pace | None:
    """Time a model that runs in this process; return None for others. Raises AgentError."""
    if not costs_nothing(core):
        return None
    messages = [ChatMessage("user", PROMPT)]
    began = monotonic()
    first = await core.complete(messages, max_tokens=1)
    read = monotonic()
    second = await core.complete(messages, max_tokens=WRITTEN)  # the prompt is still cached
    written = monotonic()
    fresh = first.usage.input_tokens - first.usage.cached_tokens
    answered = max(1, second.usage.output_tokens)
    return Pace(fresh / max(read - began, 1e-6), answered / max(written - read, 1e-6), core.max_output)
