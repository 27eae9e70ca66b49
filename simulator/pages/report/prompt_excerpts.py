"""Prompts in a report. They are shortened, because each repeats most of the one before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report.excerpts import Excerpt
from longspan.simulator.pages.report.run_view import ConversationView
from longspan.simulator.subject.prompt_log import Prompt, read_prompts

__all__ = ["add_prompts"]

MESSAGE_CHARS: Final = 2_000
"""The number of characters shown of a message in a prompt."""

END_CHARS: Final = 4_000
"""The number of characters after which no more messages from a prompt's end are shown. The first message is always shown."""

MAX_MESSAGES: Final = 50
"""The maximum number of messages shown from a prompt's end."""

MAX_CALLS: Final = 5
"""The maximum number of calls shown of a turn: the last ones."""


def add_prompts(run: RunFolder, conversations: Mapping[str, ConversationView]) -> None:
    """Add the prompts sent to models to the turns of a run that kept them. Raises JournalError if a file is damaged."""
    for id, conversation in conversations.items():
        shown: dict[int, list[str]] = {}
        for prompt in read_prompts(run.prompts(id), run.owner(id)):
            if prompt.turn is not None:
                calls = shown.setdefault(prompt.turn, [])
                calls.append(_abridge_prompt(prompt))
                del calls[:-MAX_CALLS]
        for number, texts in shown.items():
            if (turn := conversation.turn(number)) is not None:
                turn.prompt = Excerpt.of("\n\n\n".join(texts), MAX_CALLS * 4 * END_CHARS)


def _abridge_prompt(prompt: Prompt) -> str:
    """Return a prompt's first message and its last few."""
    left, size = len(prompt.messages) - 1, 0
    first = [_message(*prompt.messages[0])] if left >= 0 else []
    end: list[str] = []
    while left > 0 and size < END_CHARS and len(end) < MAX_MESSAGES:
        end.append(_message(*prompt.messages[left]))
        left, size = left - 1, size + len(end[-1])
    left_out = [f"(… {left:,} messages left out …)"] if left > 0 else []
    return "\n\n".join([f"{prompt.model}, for: {prompt.purpose}", *first, *left_out, *reversed(end)])


def _message(role: str, text: str) -> str:
    head, tail, length = Excerpt.of(text, MESSAGE_CHARS)
    between = f" (… {length - len(head) - len(tail):,} characters left out …) " if tail else ""
    return f"{role}: {head}{between}{tail}"
