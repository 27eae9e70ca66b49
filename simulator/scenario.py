"""What a scenario author derives from, and the tests that it makes."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from random import Random
from typing import Any, ClassVar, Literal, final

from pydantic import BaseModel, ConfigDict

from longspan.simulator.record import Grade, Marked, Record
from longspan.simulator.script import Line, Script, Segment
from longspan.simulator.stage import Stage
from longspan.simulator.tables import Table

__all__ = ["Scenario", "Skill", "Test"]

Skill = Literal[
    "recall",
    "conflicting information",
    "episodic memory",
    "spatial memory",
    "prospective memory",
    "theory of mind",
    "information integration",
]
"""The skills of the LTM benchmark (GoodAI, section 3.2)."""


class Scenario(BaseModel, ABC):
    """A kind of test. Its pydantic fields are its parameters; `make` writes a test from a random number generator.

    A scripted scenario returns a Script with lines and inherits `play`; a dynamic one returns an outline and writes
    `play`. Scenarios never see the agent, a clock or a file at play: they see their Stage.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ClassVar[str]
    """Unique, lower case with underscores; also the name of its entry point."""
    skills: ClassVar[tuple[Skill, ...]]
    topics: ClassVar[frozenset[str]] = frozenset()
    """What its messages are about. Tests that share a topic are never open at once; nor are two of one scenario."""
    uninterrupted: ClassVar[bool] = False
    """Played in one go: exempt from `at_distance`, from the switch rate and from placement."""
    early: ClassVar[bool] = True
    """Whether its needles can all be placed early; False where its form forbids it."""

    @abstractmethod
    def make(self, random: Random) -> Script:
        """Write one test. The same state of `random` gives the same test; nothing else may be read."""

    def series(self, tests: int, seed: str) -> Iterable[tuple[str, Script]]:
        """The tests of a run, each with its id (lower case, digits, _ and -): by default `tests` of them, numbered from 1.

        A scenario whose tests belong together, such as all questions about a text, writes its own. The same `seed` gives
        the same tests.
        """
        for number in range(1, tests + 1):
            yield str(number), self.make(Random(f"{seed}/{number}"))

    def chance(self, facts: Mapping[str, Any]) -> float:
        """What guessing without memory would score on the test, in [0, 1]."""
        return 0.0

    async def play(self, stage: Stage) -> None:
        """Say the script's lines. A dynamic scenario writes its own."""
        for line, at in stage.cues():
            if at is not None:
                await stage.wait(span=at, time=line.pause or None)
            if line.asks:
                await stage.ask(line.text, needs=line.needs, ideal=line.ideal)
            else:
                await stage.say(line.text, needle=line.needle, ideal=line.ideal)

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        """Grade a test that was played. Pure: facts and record in, grade out. By default, the sum of its awards."""
        score = min(1.0, math.fsum(award.points for award in record.awards))
        reason = "; ".join(award.why for award in record.awards) or "no points awarded"
        return Grade(score=score, reason=reason, turns=tuple(award.turn for award in record.awards))

    def metrics(self, tests: Sequence[Marked]) -> Mapping[str, float]:
        """Figures of a run's tests besides their scores, by name; only those that are known."""
        return {}

    def tables(self, runs: Mapping[str, Sequence[Marked]]) -> Sequence[Table]:
        """What a report or a comparison shows of the scenario's tests besides their scores; `runs` by what they are called."""
        return ()


@final
@dataclass(frozen=True, slots=True)
class Test:
    """One instance of a scenario inside a conversation: the `order`th that was made, from `seed`."""

    id: str
    scenario: Scenario
    script: Script
    seed: str
    order: int

    def definition(self) -> dict[str, Any]:
        """All that the test is, as JSON: what its `open` event holds, and what a run's commitment covers."""
        script = self.script
        content = {
            "test": self.id,
            "scenario": self.scenario.name,
            "parameters": self.scenario.model_dump(mode="json"),
            "facts": dict(script.facts),
            "lines": [_plain(line) for line in script.lines],
            "outline": [_plain(segment) for segment in script.outline],
            "farewell": script.farewell,
            "alone": script.alone,
        }
        definition: dict[str, Any] = json.loads(json.dumps(content))  # as it will be read back: tuples are lists
        return definition


def _plain(item: Line | Segment) -> dict[str, Any]:
    return {field.name: getattr(item, field.name) for field in fields(item)} | {"pause": item.pause.total_seconds()}
