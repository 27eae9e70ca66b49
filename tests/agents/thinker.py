"""A core in memory for the memory agent: its answers follow from what it is asked."""

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
from longspan.simulator.tokens import Tokenizer

__all__ = ["START", "Thinker", "made", "message", "play", "purpose"]

START = datetime(2024, 1, 1, 9, 0)

WORDS = ["sand", "tide", "gull", "pier", "rope", "mast", "buoy", "reef"]

Answer = Callable[[str, str], str | Exception]


def purpose(text: str) -> str:
    """What a prompt's last message asks for: "queries", "notes" or "reply"."""
    if "Do not answer it yet." in text:
        return "queries"
    return "notes" if text.startswith("You keep notes") else "reply"


def sensible(kind: str, text: str) -> str:
    """An answer that follows from the whole text, so that any difference in it shows."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    words = " ".join(WORDS[int(digit, 16) % len(WORDS)] for digit in digest[:3])
    return {
        "queries": json.dumps({"queries": [words]}),
        "notes": json.dumps({digest[0]: words, digest[1]: None}),
        "reply": f"I say {words}.",
    }[kind]


class Thinker:
    """Counts in cl100k tokens. `answer` gives what it says to a prompt's purpose and last text, or an error to raise; `takes`:
    tokens that a prompt may have before it is refused. `prompts` is all that it was asked."""

    name = "made/thinker"
    overhead = 4

    def __init__(self, answer: Answer = sensible, *, window: int | None = None, most_output: int = 100, takes: int | None = None) -> None:
        self.answer, self.window, self.most_output, self.takes = answer, window, most_output, takes
        self.prompts: list[list[ChatMessage]] = []
        self.count = Tokenizer().count

    def size(self, messages: Sequence[ChatMessage]) -> int:
        return sum(self.count(message.text) + self.overhead for message in messages)

    async def complete(
        self, messages: Sequence[ChatMessage], *, most: int | None = None, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        await trio.lowlevel.checkpoint()
        if self.takes is not None and self.size(messages) > self.takes:
            raise ContextOverflowError(f"{self.name}: the prompt is too long")
        self.prompts.append(list(messages))
        answer = self.answer(purpose(messages[-1].text), messages[-1].text)
        if isinstance(answer, Exception):
            raise answer
        return Completion(answer, Usage(self.size(messages), 0, self.count(answer)))

    def asked_for(self, kind: str) -> list[list[ChatMessage]]:
        return [prompt for prompt in self.prompts if purpose(prompt[-1].text) == kind]


def made(core: Thinker, *, embedder: Embedder | None = None, **options: Any) -> MemoryAgent:
    """A memory agent around `core`, with a context of 1,500 tokens unless told otherwise."""
    return MemoryAgent(core, LtmOptions(**({"context": 1500} | options)), embedder or HashEmbedder(), Index())


def message(number: int, text: str) -> Message:
    return Message(text, START + number * timedelta(seconds=30), f"c-{number}")


def play(agent: MemoryAgent, turns: Sequence[tuple[str, str | None]], first: int = 0) -> list[Reply | None]:
    """Play turns: a text, and the reply of those that the agent is only told of. Returns its replies."""

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
