"""A fake core for the memory agent, whose answers are determined by its prompts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import trio

from longspan.agents.base import Message, Reply, Usage
from longspan.agents.memory.ltm.agent import MemoryAgent
from longspan.agents.memory.ltm.embedders import Embedder, HashEmbedder
from longspan.agents.memory.ltm.index import Index
from longspan.agents.memory.ltm.options import LtmOptions
from longspan.agents.models.core import ChatMessage, Completion, ContextOverflowError
from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.subject.ledger import Rates

__all__ = ["START", "Thinker", "memory_agent", "message", "play", "purpose"]

START = datetime(2024, 1, 1, 9, 0)

WORDS = ["sand", "tide", "gull", "pier", "rope", "mast", "buoy", "reef"]

Answer = Callable[[str, str], str | Exception]


def purpose(text: str) -> str:
    """Return what a prompt's last message asks for: "queries", "notes" or "reply"."""
    if "Do not answer it yet." in text:
        return "queries"
    return "notes" if text.startswith("You keep notes") else "reply"


def sensible(kind: str, text: str) -> str:
    """Return an answer that depends on the whole text, so that any difference in it shows."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    words = " ".join(WORDS[int(digit, 16) % len(WORDS)] for digit in digest[:3])
    return {
        "queries": json.dumps({"queries": [words]}),
        "notes": json.dumps({digest[0]: words, digest[1]: None}),
        "reply": f"I say {words}.",
    }[kind]


class Thinker:
    """A core that counts cl100k tokens.

    `answer` returns the answer for a prompt's purpose and last text, or an error to raise. `max_prompt`: the maximum tokens of a
    prompt. `prompts` are all prompts so far.
    """

    name: str = "made/thinker"
    priced_as: str | Rates = name
    overhead = 4

    def __init__(
        self, answer: Answer = sensible, *, window: int | None = None, max_output: int = 100, max_prompt: int | None = None
    ) -> None:
        self.answer, self.window, self.max_output, self.max_prompt = answer, window, max_output, max_prompt
        self.prompts: list[list[ChatMessage]] = []
        self.count = Tokenizer().count

    def size(self, messages: Sequence[ChatMessage]) -> int:
        return sum(self.count(message.text) + self.overhead for message in messages)

    async def complete(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        await trio.lowlevel.checkpoint()
        if self.max_prompt is not None and self.size(messages) > self.max_prompt:
            raise ContextOverflowError(f"{self.name}: the prompt is too long")
        self.prompts.append(list(messages))
        answer = self.answer(purpose(messages[-1].text), messages[-1].text)
        if isinstance(answer, Exception):
            raise answer
        return Completion(answer, Usage(self.size(messages), 0, self.count(answer)))

    def asked_for(self, kind: str) -> list[list[ChatMessage]]:
        return [prompt for prompt in self.prompts if purpose(prompt[-1].text) == kind]


def memory_agent(core: Thinker, *, embedder: Embedder | None = None, **options: Any) -> MemoryAgent:
    """Return a memory agent around `core`, with a context of 1,500 tokens by default."""
    return MemoryAgent(core, LtmOptions(**({"context": 1500} | options)), embedder or HashEmbedder(), Index())


def message(number: int, text: str) -> Message:
    return Message(text, START + number * timedelta(seconds=30), f"c-{number}")


def play(agent: MemoryAgent, turns: Sequence[tuple[str, str | None]], first: int = 0) -> list[Reply | None]:
    """Play turns: texts, each with a reply if the agent only observes it. Return the agent's replies."""

    async def all_of_them() -> list[Reply | None]:
        replies: list[Reply | None] = []
        for number, (text, reply) in enumerate(turns, first):
            if reply is None:
                replies.append(await agent.reply(message(number, text)))
            else:
                await agent.observe(message(number, text), reply)
                replies.append(None)
        return replies

    return trio.run(all_of_them)
