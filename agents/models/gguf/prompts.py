"""A conversation as a model's prompt: written out by its own chat template, in its own tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, Final, final

from longspan.agents.base import AgentError, InputError
from longspan.agents.models.core import ChatMessage
from longspan.agents.models.gguf.vocabulary import Vocabulary
from longspan.simulator.clock import DEFAULT_START
from longspan.simulator.errors import one_line

__all__ = ["Prompts"]

MARKS: Final = "".join(map(chr, [*range(0xE000, 0xF900), 0]))
"""Characters without a meaning, to mark places in texts with."""

WORD: Final = "word"


@final
class Prompts:
    """Prompts of the model that has `vocabulary`.

    Templates run in Jinja's sandbox. Those that ask for today's date are told the one on which virtual time starts. What looks
    like a control token in a message is text like any other. Raises InputError where there is no template, or none that works.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        if vocabulary.template is None:
            raise InputError("it has no chat template: no chat model, take one made to follow instructions")
        self._vocabulary = vocabulary
        self._template = vocabulary.template
        self._controls = _inside(vocabulary.controls())
        self._merges_system = False
        try:
            self._format = self._formatter()
            self._merges_system = not self._takes_system()
            self._measure()
        except Exception as error:
            raise InputError(f"its chat template does not work: {one_line(error)}") from error

    def _formatter(self) -> Any:
        begin, end = self._vocabulary.edges
        formatter = import_module("llama_cpp.llama_chat_format").Jinja2ChatFormatter(self._template, end, begin)
        formatter.strftime_now = DEFAULT_START.strftime
        return formatter

    def _takes_system(self) -> bool:
        try:
            self._written([ChatMessage("system", WORD), ChatMessage("user", WORD)])
        except Exception:
            return False
        return True

    def _measure(self) -> None:
        """Find out how many tokens frame a prompt (`base`) and each of its messages (`overhead`), whoever's they are."""
        system, user, assistant = (ChatMessage(role, WORD) for role in ("system", "user", "assistant"))
        alone = len(self.tokens([user]))
        try:
            self._frame = len(self.tokens([ChatMessage("user", "")]))
        except AgentError:  # messages may not be empty
            self._frame = alone - len(self._vocabulary.tokens(WORD))
        word = self.count(WORD)
        pair = len(self.tokens([user, assistant, user])) - alone - 2 * word
        self.overhead = max(0, -(-pair // 2), len(self.tokens([system, user])) - alone - word)
        self.base = max(0, self._frame - self.overhead)

    def count(self, text: str) -> int:
        """Tokens of a text inside a prompt. A conversation has at most `base`, and for each message its count and `overhead`;
        exactly that, if the template frames all roles by equally many tokens."""
        return max(0, len(self.tokens([ChatMessage("user", text)])) - self._frame)

    def tokens(self, messages: Sequence[ChatMessage]) -> list[int]:
        """The prompt for the answer to a conversation. Raises AgentError where the template refuses it."""
        mark = self._mark(messages)
        inert = [message._replace(text=self._controls.sub(mark, message.text)) for message in messages]
        try:
            written = self._written(inert)
        except Exception as error:
            raise AgentError(f"the model's chat template refuses the conversation: {one_line(error)}") from error
        return [token for part in written.split(mark) for token in self._vocabulary.tokens(part)]

    def _written(self, messages: Sequence[ChatMessage]) -> str:
        """The prompt as text. A system message that the template does not take goes in front of the user's first."""
        if self._merges_system and len(messages) > 1 and messages[0].role == "system":
            first = ChatMessage("user", f"{messages[0].text}\n\n{messages[1].text}")
            messages = [first, *messages[2:]]
        written: str = self._format(messages=[{"role": role, "content": text} for role, text in messages]).prompt
        return written

    def _mark(self, messages: Sequence[ChatMessage]) -> str:
        """A character that stands nowhere else, to part what would be read as a control token."""
        used = set(self._template).union(*(message.text for message in messages))
        return next((mark for mark in MARKS if mark not in used), MARKS[-1])


def _inside(controls: Iterable[str]) -> re.Pattern[str]:
    """The place after the first character of every control token in a text."""
    places = (f"(?<={re.escape(text[0])})(?={re.escape(text[1:])})" for text in controls if len(text) > 1)
    return re.compile("|".join(places) or "(?!)")
