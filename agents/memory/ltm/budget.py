"""The division of a prompt's tokens among its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from longspan.agents.base import InputError
from longspan.agents.memory.ltm.options import CONTEXT, LtmOptions
from longspan.agents.memory.ltm.prompts import render_prompt
from longspan.agents.models.core import Core

__all__ = ["FRAME", "MAX_QUERIES", "Budget"]

MEMORIES_DIVISOR: Final = 4
NOTES_DIVISOR: Final = 16
"""Memories may take a quarter of a prompt's tokens, and notes a sixteenth."""

FRAME: Final = 32
"""Tokens that a memory takes beyond its text, for its times."""

MAX_QUERIES: Final = 3
"""The maximum queries that the core may add to those from the message."""

MIN_CONVERSATION: Final = 64
"""The minimum tokens for the conversation."""


@final
@dataclass(frozen=True, slots=True)
class Budget:
    """The division of a prompt's `context` tokens.

    `fixed` covers the system message and the template's text. `memories` and `notes` are maximums. `conversation` covers recent turns and
    the message. It does not grow when memories and notes are short, since the start of the prompt would then change with them.
    """

    context: int
    fixed: int
    memories: int
    notes: int

    @property
    def conversation(self) -> int:
        return self.context - self.fixed - self.memories - self.notes

    @classmethod
    def of(cls, core: Core, options: LtmOptions, system: str) -> Budget:
        """Return the budget that the options set. Raises InputError if the context is too small, or too large for the core."""
        context = _context(core, options)
        notes = 0 if options.memory == "semantic" else context // NOTES_DIVISOR
        memories = min(context // MEMORIES_DIVISOR, options.memories * (options.chunk + FRAME))
        ask = render_prompt("ask", notes=" ", memories=[{"when": "", "text": ""}], message="")
        queries = render_prompt("queries", notes=" ", message="", most=MAX_QUERIES)
        fixed = core.count(system) + 2 * core.overhead + max(core.count(ask), core.count(queries))
        budget = cls(context, fixed, memories, notes)
        if budget.conversation < MIN_CONVERSATION:
            raise InputError(
                f"agent ltm: context={context} is too small for {core.name}: system message, notes and memories take "
                f"{fixed + memories + notes:,} tokens of it; set a larger context=, or use a model with a larger window"
            )
        return budget


def _context(core: Core, options: LtmOptions) -> int:
    if core.window is None:
        return options.context or CONTEXT
    room = core.window - core.max_output
    if options.context is not None and options.context > room:
        raise InputError(
            f"agent ltm: context={options.context} and an answer of {core.max_output:,} tokens are more than the {core.window:,} of "
            f"{core.name}: set context={max(room, 0)} or less"
        )
    return options.context or min(CONTEXT, room)
