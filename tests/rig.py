"""Helpers for playing conversations in tests: made-up scenarios, agents with replies of given lengths, and `play`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import count
from pathlib import Path
from random import Random
from typing import ClassVar, final

import trio

from longspan.agents.base import BaseAgent
from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.contract.messages import Message, Reply
from longspan.simulator.contract.scenario import Scenario, Skill, Test
from longspan.simulator.contract.script import Line, Placement, Script, Segment
from longspan.simulator.contract.stage import Stage
from longspan.simulator.filler.filler import Filler, Pair
from longspan.simulator.journal import events
from longspan.simulator.journal.journal import Journal
from longspan.simulator.journal.transcript import Transcript
from longspan.simulator.play.conversation import Conversation
from longspan.simulator.play.live_agent import LiveAgent
from longspan.simulator.play.setting import Setting

__all__ = ["Babbler", "Made", "Waiting", "made_test", "play", "setting"]


@final
class Sums:
    """A small source of filler, for tests that look only at the order of a conversation."""

    def __init__(self, seed: int) -> None:
        self._first = seed

    def pairs(self) -> Iterator[Pair]:
        return ((f"What is {number % 97} plus {number % 89}?", str(number % 97 + number % 89)) for number in count(self._first))

    def chat(self) -> Iterator[Pair]:
        return iter(())

    def reseed(self, seed: str) -> Sums:
        return Sums(Random(seed).randrange(1000))


@final
class Babbler(BaseAgent):
    """Replies with random words, as many tokens as `length` draws."""

    WORDS: ClassVar = [" the", " of", " and", " to", " in", " is", " you", " that", " it", " he", " was", " for", " on", " are", " with"]

    def __init__(self, seed: int, length: Callable[[Random], int] = lambda random: random.randint(5, 60)) -> None:
        super().__init__()
        self._seed = seed
        self._length = length

    async def reply(self, message: Message) -> Reply:
        random = Random(f"{self._seed}/{message.turn_id}")
        return Reply("".join(random.choice(self.WORDS) for _ in range(self._length(random))))


class Made(Scenario):
    """A made-up scenario that plays a given script."""

    name: ClassVar[str] = "made"
    skills: ClassVar[tuple[Skill, ...]] = ("recall",)
    script: Script

    def make(self, random: Random) -> Script:
        return self.script


class Waiting(Scenario):
    """Waits for a verdict on its only reply."""

    name: ClassVar[str] = "waiting"
    skills: ClassVar[tuple[Skill, ...]] = ("recall",)

    def make(self, random: Random) -> Script:
        return Script(facts={}, outline=[Segment(0, 20, 1)])

    async def play(self, stage: Stage) -> None:
        reply = await stage.ask("How are you?", ideal="Fine.")
        verdict = await stage.judge("Somebody is fine.", reply)
        stage.award(float(verdict.holds or 0), verdict.why)


def made_test(
    name: str,
    number: int,
    order: int,
    *,
    lines: Sequence[Line] = (),
    outline: Sequence[Segment] = (),
    play: Callable[[Stage], object] | None = None,
    topics: frozenset[str] = frozenset(),
    uninterrupted: bool = False,
    farewell: str | None = None,
    placement: Placement = "uniform",
) -> Test:
    """Create a test of a made-up scenario called `name`."""
    body: dict[str, object] = {"name": name, "topics": topics, "uninterrupted": uninterrupted, "__module__": __name__}
    body["__annotations__"] = {"name": ClassVar[str], "topics": ClassVar[frozenset[str]], "uninterrupted": ClassVar[bool]}
    if play is not None:
        body["play"] = lambda self, stage: play(stage)
    scenario = type(name, (Made,), body)(script=Script(facts={}, lines=lines, outline=outline, farewell=farewell))
    seed = f"{name}/{number}"
    return Test(f"{name}-{number}", scenario, scenario.script.placed(placement, Random(seed)), seed, order)


def setting(
    span: int, *, seed: int = 0, placement: Placement = "uniform", isolated: bool = False, pace: timedelta = timedelta(seconds=30)
) -> Setting:
    tokenizer = Tokenizer()
    filler = Filler(Sums(seed), tokenizer)
    return Setting(id="main", span=span, placement=placement, isolated=isolated, tokenizer=tokenizer, filler=filler, pace=pace)


def play(
    tests: Sequence[Test],
    agent: BaseAgent,
    where: Setting,
    path: Path,
    *,
    listener: Callable[[events.Event], None] | None = None,
    give_ideal: Callable[[str], None] | None = None,
) -> Transcript:
    """Play the tests that fit, with the journal at `path`, and return the conversation's transcript."""
    transcript = Transcript()

    def on_event(event: events.Event) -> None:
        transcript.add(event)
        if listener is not None:
            listener(event)

    with Journal(path) as journal:
        fitting = [test for test in tests if where.reason_to_omit(test) is None]
        conversation = Conversation(where, fitting, LiveAgent(agent, give_ideal=give_ideal), journal, listener=on_event)
        trio.run(conversation.play)
    return transcript
