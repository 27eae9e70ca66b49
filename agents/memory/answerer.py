"""The answerer: one model with the same prompt for all memories, so that they can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, final

from jinja2 import Template

from longspan.agents.base import Message, Usage
from longspan.agents.memory.calls import Calls
from longspan.agents.memory.memory import MemoryItem
from longspan.agents.models.core import ChatMessage, ContextOverflowError, Core, OnRefusal, clean_unicode, costs_nothing, stamp_message
from longspan.simulator.base.templating import make_environment
from longspan.simulator.subject.ledger import Rates

__all__ = ["Answerer", "MemoryAnswer"]

TEMPLATES: Final = Path(__file__).parent / "templates"

OVERFLOWS: Final = 4
"""The maximum retries of a prompt that exceeds the model's context. Each retry drops a quarter of the memories."""


class MemoryAnswer(NamedTuple):
    """A reply with the memories in its prompt, further trace entries and usage. `refused`: the model refused."""

    text: str
    shown: Sequence[MemoryItem]
    trace: Mapping[str, Any]
    usage: Usage | None = None
    refused: bool = False


@final
class Answerer:
    """An answerer that prompts `core` with a message and the memories found. Prompt and answer take at most `context` tokens."""

    def __init__(self, core: Core, context: int | None, on_refusal: OnRefusal) -> None:
        self.core = core
        self._context = min(filter(None, (context, core.window)), default=None)
        self._on_refusal = on_refusal

    @property
    def models(self) -> Mapping[str, str | Rates]:
        """The model, if it costs money. A model that runs in this process is free."""
        return {} if costs_nothing(self.core) else {"agent": self.core.priced_as}

    async def answer(self, message: Message, items: Sequence[MemoryItem], *, whole: bool) -> MemoryAnswer:
        """Return the answer to a message. Memories that do not fit are dropped: the worst, or the oldest if `whole`.

        Raises AgentError.
        """
        asked = {"message": clean_unicode(message.text), "now": f"{message.sent_at:%a %Y-%m-%d %H:%M:%S}"}
        texts = [clean_unicode(stamp_message(item.text, item.at) if item.at else item.text) for item in items]
        kept = self._count_fitting(asked, texts, whole=whole)
        calls = Calls(self.core)
        for attempt in range(OVERFLOWS + 1):
            chosen = _part(len(texts), kept, whole=whole)
            prompt = _template().render(items=texts[chosen], **asked)
            try:
                completion = await calls.reply([ChatMessage("user", prompt)], self._on_refusal)
            except ContextOverflowError:
                if attempt == OVERFLOWS or not kept:
                    raise
                kept = kept * 3 // 4
            else:
                break
        tokens = self.core.count(prompt) + self.core.overhead
        told = {"prompt_tokens": tokens, "calls": calls.records} | completion.told
        if calls.refusal is not None:
            told["refusal"] = calls.refusal
        return MemoryAnswer(completion.text, items[chosen], told, calls.usage, calls.refusal is not None)

    def _count_fitting(self, asked: Mapping[str, str], texts: Sequence[str], *, whole: bool) -> int:
        """Return how many texts fit into the context, counted from the best, or from the newest if `whole`."""
        if self._context is None:
            return len(texts)
        frame = self.core.count(_template().render(items=[], **asked)) + self.core.overhead
        room = self._context - self.core.max_output - frame
        for number, text in enumerate(reversed(texts) if whole else texts):
            room -= self.core.count(text) + 2
            if room < 0:
                return number
        return len(texts)


def _part(length: int, kept: int, *, whole: bool) -> slice:
    return slice(length - kept, length) if whole else slice(0, kept)


@cache
def _template() -> Template:
    return make_environment(TEMPLATES, trim_blocks=True, lstrip_blocks=True).get_template("answer.j2")
