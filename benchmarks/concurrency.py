"""Many conversations at once with a model behind an API: how much longer they take than the longest of them alone."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Final, final

import trio

from benchmarks._loopback import base_url, provider
from longspan.agents.base import Message
from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.contract.agent import Agent
from longspan.simulator.filler.filler import Filler
from longspan.simulator.filler.talk import Talk
from longspan.simulator.journal import events
from longspan.simulator.journal.journal import Journal
from longspan.simulator.play.conversation import Conversation
from longspan.simulator.play.live_agent import LiveAgent
from longspan.simulator.play.setting import Setting
from longspan.simulator.subject.snapshots import Snapshots
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent
from longspan.simulator.suite.suite import load_suite, make_tests

__all__ = ["SPAN", "measure"]

SPAN: Final = 2_000
LATENCY: Final = 0.5
MAX_RATIO: Final = 1.2
"""How many times as long as the longest conversation alone all of them may take."""

KINDS: Final = ("openai", "anthropic", "google")
STEPS: Final = (25, 50, 75, 100, 125, 150, 200)
"""Numbers of conversations at once with full windows, tried until they take too long."""


def measure(span: int) -> dict[str, float]:
    """Return ratios, megabytes, and milliseconds of CPU time for each turn, including the engine and the journal."""
    figures: dict[str, float] = {}
    with provider(LATENCY) as port:
        figures["openai, context 2k, 50 at once / alone"] = _ratio(span, port, 2_000, 50)
        figures["openai, context 2k, 50 at once, MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    with provider() as port:
        for kind in KINDS:
            for context in (2_000, 16_000):
                figures[f"{kind}, context {context // 1000}k, ms a turn"] = _cost(span, kind, port, context) * 1000
    with provider(LATENCY) as port:
        possible = 0
        for at_once in STEPS:
            ratio = figures[f"openai, context 16k, {at_once} at once / alone"] = _ratio(span, port, 16_000, at_once)
            if ratio > MAX_RATIO:
                break
            possible = at_once
        figures["openai, context 16k, at once at most"] = possible
    return figures


def _ratio(span: int, port: int, context: int, at_once: int) -> float:
    """Return how many times as long so many conversations take as the one that ended last takes alone."""
    many = _Play(span, "openai", port, context)
    together = many.seconds(range(at_once))
    alone = _Play(span, "openai", port, context).seconds([many.last])
    return together / alone


def _cost(span: int, kind: str, port: int, context: int) -> float:
    """Return the CPU seconds for each turn that a model is asked."""
    playing = _Play(span, kind, port, context)
    playing.seconds([0])  # whatever is loaded at first use
    before = playing.asked
    playing.seconds(range(1, 6))
    return playing.cpu / (playing.asked - before)


@final
class _Play:
    """Plays conversations of the suite `ltm`, one test of each scenario.

    With a context larger than the span, the windows are full from the first turn on. `asked` counts the turns that the model
    was asked; `last` is the seed of the conversation that ended last; `cpu` is the CPU seconds of the last call of `seconds`.
    """

    def __init__(self, span: int, kind: str, port: int, context: int) -> None:
        self._suite = load_suite("ltm").apply_changes([], [], [], 1)
        self._span = span
        self._spec = AgentSpec.parse(f"{kind}/some-model?base_url={base_url(kind, port)}&context={context}&at_once=1000")
        self._context = context
        self.asked = 0
        self.last = 0
        self.cpu = 0.0

    def seconds(self, seeds: Sequence[int]) -> float:
        """Return the seconds that the conversations of these seeds take, played at once, without their preparation."""
        return trio.run(self._all, seeds)

    async def _all(self, seeds: Sequence[int]) -> float:
        with TemporaryDirectory() as folder, ExitStack() as journals:
            prepared = [(seed, await self._prepare(seed, Path(folder, str(seed)), journals)) for seed in seeds]
            began, used = perf_counter(), process_time()
            async with trio.open_nursery() as nursery:
                for seed, conversation in prepared:
                    nursery.start_soon(self._one, seed, conversation)
            self.cpu = process_time() - used
            return perf_counter() - began

    async def _one(self, seed: int, conversation: Conversation) -> None:
        await conversation.play()
        self.last = seed

    async def _prepare(self, seed: int, folder: Path, journals: ExitStack) -> Conversation:
        tokenizer = Tokenizer()
        setting = Setting(id="main", span=self._span, tokenizer=tokenizer, filler=Filler(Talk(seed), tokenizer))
        tests = [test for test in make_tests(self._suite, seed, "spread") if setting.reason_to_omit(test) is None]
        agent = make_agent(self._spec)
        if self._context > self._span:
            await _fill(agent, self._context)
        journal = journals.enter_context(Journal(folder / "journal.jsonl"))
        return Conversation(setting, tests, LiveAgent(agent, snapshots=Snapshots(folder / "snapshots")), journal, listener=self._count)

    def _count(self, event: events.Event) -> None:
        self.asked += isinstance(event, events.Reply) and event.asked


async def _fill(agent: Agent, context: int) -> None:
    """Show the agent as much as it can keep, in turns of about 60 tokens."""
    for number in range(context // 60):
        text = f"On day {number} of the log: the wind was fresh, two boats came in, and the harbour master noted their names and cargo."
        await agent.observe(Message(text, datetime(2023, 12, 1), f"before-{number}"), "Noted: two boats.")
