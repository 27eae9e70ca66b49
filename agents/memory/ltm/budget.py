"""How many tokens of a prompt are whose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from longspan.agents.base import InputError
from longspan.agents.memory.ltm.options import CONTEXT, LtmOptions
from longspan.agents.memory.ltm.prompts import prompt
from longspan.agents.models.core import Core

__all__ = ["FRAME", "QUERIES", "Budget"]

MEMORIES: Final = 4
NOTES: Final = 16
"""One in so many tokens of a prompt may be of memories, and of notes."""

FRAME: Final = 32
"""Tokens that a memory takes beyond its text: when it was."""

QUERIES: Final = 3
"""What the core may look for, besides what is like the message."""

LEAST: Final = 64
"""Tokens that have to be left for the conversation."""


@final
@dataclass(frozen=True, slots=True)
class Budget:
    """The tokens of a prompt of `context` tokens: `fixed` for the system message and the words around everything, `memories`
    and `notes` at most for these, and `conversation` for recent turns and the message. That room is the same for every
    prompt, however much of the others it has: else turns would leave early, and the beginning of the prompt change."""

    context: int
    fixed: int
    memories: int
    notes: int

    @property
    def conversation(self) -> int:
        return self.context - self.fixed - self.memories - self.notes

    @classmethod
    def of(cls, core: Core, options: LtmOptions, system: str) -> Budget:
        """The budget that options ask for. Raises InputError where the core has no such context, or it is too small."""
        context = _context(core, options)
        notes = 0 if options.memory == "semantic" else context // NOTES
        memories = min(context // MEMORIES, options.memories * (options.chunk + FRAME))
        ask = prompt("ask", notes=" ", memories=[{"when": "", "text": ""}], message="")
        queries = prompt("queries", notes=" ", message="", most=QUERIES)
        fixed = core.count(system) + 2 * core.overhead + max(core.count(ask), core.count(queries))
        budget = cls(context, fixed, memories, notes)
        if budget.conversation < LEAST:
            raise InputError(
                f"agent ltm: context={context} is too small for {core.name}: {fixed + memories + notes:,} tokens of it are taken before "
                "anything is said; take a larger context=, or a model with a larger window"
            )
        return budget


def _context(core: Core, options: LtmOptions) -> int:
    if core.window is None:
        return options.context or CONTEXT
    room = core.window - core.most_output
    if options.context is not None and options.context > room:
        raise InputError(
            f"agent ltm: context={options.context} and an answer of {core.most_output:,} tokens are more than the {core.window:,} of "
            f"{core.name}: take context={max(room, 0)} or less"
        )
    return options.context or min(CONTEXT, room)
