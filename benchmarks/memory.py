"""The memory of the agent `ltm` at 100,000 memories: adding, searching, saving, and its use of the machine."""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import trio

from longspan.agents.base import Message, Usage
from longspan.agents.memory.ltm.agent import MemoryAgent
from longspan.agents.memory.ltm.embedders import HashEmbedder
from longspan.agents.memory.ltm.index import Index
from longspan.agents.memory.ltm.options import LtmOptions
from longspan.agents.models.core import ChatMessage, Completion
from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.subject.snapshots import Snapshots

__all__ = ["OPTIONS", "measure"]

OPTIONS = {"--memories": {"type": int, "default": 100_000, "help": "how many memories (default: 100000)"}}
LOOKUPS = 500
WORDS = 20_000
"""The size of the vocabulary. The n-th most frequent word occurs 1/n times as often as the first."""


def measure(span: int, memories: int) -> dict[str, float]:
    """Show an agent turns of 30 to 60 words until it has so many memories, whatever the span, and measure.

    `stall` is the longest time that Trio's loop was blocked during lookups.
    """
    return trio.run(_measure, memories)


async def _measure(memories: int) -> dict[str, float]:
    random = Random(0)
    words = ["".join(random.choice("bcdfglmnprst") + random.choice("aeiou") for _ in range(random.randint(1, 4))) for _ in range(WORDS)]
    weights = [1 / (rank + 1) for rank in range(WORDS)]

    def message(number: int) -> Message:
        text = " ".join(random.choices(words, weights, k=random.randint(30, 60)))
        return Message(f"{text}.", datetime(2024, 1, 1) + number * timedelta(seconds=30), f"turn-{number}")

    agent = _agent()
    began = perf_counter()
    number = 0
    while len(agent.memories) < memories:
        await agent.observe(message(number), "OK.")
        number += 1
    await agent.memories.flush()
    adding = perf_counter() - began
    seconds, stall = await _look_up(agent, [message(number + lookup).text for lookup in range(LOOKUPS)])
    figures = {
        "memories": len(agent.memories),
        "added a second": number / adding,
        "lookup median ms": median(seconds) * 1000,
        "lookup 95th percentile ms": quantiles(seconds, n=20)[-1] * 1000,
        "stall ms": stall * 1000,
    }
    with TemporaryDirectory() as folder:
        began = perf_counter()
        await Snapshots(Path(folder)).save(agent, number)
        figures["snapshot s"] = perf_counter() - began
        figures["snapshot MB"] = sum(path.stat().st_size for path in Path(folder).rglob("*.*") if path.is_file()) / 1e6
        figures["process at most MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3  # before there is a second agent
        copy = _agent()
        began = perf_counter()
        await Snapshots(Path(folder)).restore(copy, number)
        figures["restored in s"] = perf_counter() - began
    return figures | {"cores": os.cpu_count() or 0}


async def _look_up(agent: MemoryAgent, queries: Sequence[str]) -> tuple[list[float], float]:
    """Return the seconds of each lookup, and the longest time that nothing else could run."""
    seconds: list[float] = []
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        while True:
            before = perf_counter()
            await trio.sleep(0.001)
            longest = max(longest, perf_counter() - before - 0.001)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(tick)
        for query in queries:
            began = perf_counter()
            await agent.memories.search([query], 10)
            seconds.append(perf_counter() - began)
        nursery.cancel_scope.cancel()
    return seconds, longest


def _agent() -> MemoryAgent:
    return MemoryAgent(_Mute(), LtmOptions(memory="semantic"), HashEmbedder(), Index())


class _Mute:
    """A core that is never asked."""

    name, overhead, window, max_output = "mute", 4, None, 100

    def __init__(self) -> None:
        self.count = Tokenizer().count

    async def complete(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        return Completion("OK.", Usage())
