"""Prompts: conversations rendered by a model's chat template and tokenized."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, final

from longspan.agents.base import AgentError, InputError
from longspan.agents.models.core import ChatMessage
from longspan.agents.models.gguf.model import Stop
from longspan.agents.models.gguf.rendering import Renderer, TemplateError
from longspan.agents.models.gguf.vocabulary import Vocabulary
from longspan.simulator.base.clock import DEFAULT_START

__all__ = ["Prompts"]

SEPARATORS: Final = "".join(map(chr, [*range(0xE000, 0xF900), 0]))
"""Characters without meaning, for splitting texts."""

WORD: Final = "word"


@final
class Prompts:
    """Prompts of the model with `vocabulary`, by its chat template or a custom one.

    Templates run in Jinja's sandbox, in a separate process. Today's date is the day when virtual time starts. Control tokens spelled in a
    message stay plain text. Raises InputError if the template is missing or does not work.
    """

    def __init__(self, vocabulary: Vocabulary, template: str | None = None) -> None:
        own = vocabulary.template
        if own is None and template is None:
            raise InputError("it has no chat template: use a model trained for chat or instructions, or name one with chat_template=FILE")
        self._vocabulary = vocabulary
        self._template = template if template is not None else own or ""
        self._name = "the model's chat template" if template is None else "the chat template of chat_template="
        self._controls = _split_points(vocabulary.control_tokens())
        begin, end = vocabulary.begin_and_end
        absent = dict.fromkeys(("functions", "function_call", "tools", "tool_choice"))
        constants = {"bos_token": begin, "eos_token": end, "add_generation_prompt": True, **absent}
        self._renderer = Renderer(self._template, constants, DEFAULT_START)
        self._merges_system = False
        try:
            self._merges_system = not self._takes_system()
            self._measure()
        except AgentError as error:
            raise InputError(str(error)) from error

    def _takes_system(self) -> bool:
        try:
            self._render([ChatMessage("system", WORD), ChatMessage("user", WORD)])
        except TemplateError as error:
            if not error.refused:
                raise
            return False
        return True

    def _measure(self) -> None:
        """Measure how many tokens frame a prompt (`base`) and each of its messages of any role (`overhead`)."""
        system, user, assistant = (ChatMessage(role, WORD) for role in ("system", "user", "assistant"))
        alone = len(self.tokens([user]))
        try:
            self._frame = len(self.tokens([ChatMessage("user", "")]))
        except TemplateError as error:
            if not error.refused:
                raise
            self._frame = alone - len(self._vocabulary.tokens(WORD))
        word = self.count(WORD)
        pair = len(self.tokens([user, assistant, user])) - alone - 2 * word
        self.overhead = max(0, -(-pair // 2), len(self.tokens([system, user])) - alone - word)
        self.base = max(0, self._frame - self.overhead)

    def count(self, text: str) -> int:
        """Return the tokens of `text` inside a prompt.

        A conversation has at most `base` tokens, plus `overhead` and the count for each message. It has exactly that many if the template
        frames all roles with equally many tokens.
        """
        return max(0, len(self.tokens([ChatMessage("user", text)])) - self._frame)

    def text(self, messages: Sequence[ChatMessage]) -> str:
        """Return a conversation's prompt as text, including the template's additions."""
        return self._render(messages)

    def tokens(self, messages: Sequence[ChatMessage], stop: Stop | None = None) -> list[int]:
        """Return a conversation's prompt as tokens. Raises AgentError if the template fails, or once `stop` is set."""
        separator = self._separator(messages)
        inert = [message._replace(text=self._controls.sub(separator, message.text)) for message in messages]
        text = self._render(inert, stop)
        return [token for piece in text.split(separator) for token in self._vocabulary.tokens(piece)]

    def _render(self, messages: Sequence[ChatMessage], stop: Stop | None = None) -> str:
        """Return the prompt as text. If the template rejects system messages, the system message precedes the first user message's text."""
        if self._merges_system and len(messages) > 1 and messages[0].role == "system":
            first = ChatMessage("user", f"{messages[0].text}\n\n{messages[1].text}")
            messages = [first, *messages[2:]]
        try:
            return self._renderer.render(messages, stop)
        except TemplateError as error:
            turns = f"a conversation of {len(messages):,} message{'s' if len(messages) > 1 else ''}"
            raise TemplateError(f"{self._name} fails on {turns}: {error}", refused=error.refused) from error.__cause__

    def _separator(self, messages: Sequence[ChatMessage]) -> str:
        """Return a character that occurs nowhere else, to split text that would be read as a control token."""
        used = set(self._template).union(*(message.text for message in messages))
        return next((separator for separator in SEPARATORS if separator not in used), SEPARATORS[-1])


def _split_points(controls: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that matches the place after the first character of each control token."""
    places = (f"(?<={re.escape(text[0])})(?={re.escape(text[1:])})" for text in controls if len(text) > 1)
    return re.compile("|".join(places) or "(?!)")
