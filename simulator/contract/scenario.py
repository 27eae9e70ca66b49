"""The base class of scenarios, and the tests that they make."""

from __future__ import annotations

import hashlib
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from random import Random
from typing import Any, ClassVar, Final, Literal, NamedTuple, final

from pydantic import BaseModel, ConfigDict

from longspan.simulator.base.tables import Table
from longspan.simulator.contract.graded_record import Award, Exchange, Grade, Marked, Record
from longspan.simulator.contract.script import Line, Script, Segment
from longspan.simulator.contract.stage import Stage

__all__ = ["Award", "Exchange", "Grade", "Measure", "Record", "Scenario", "Skill", "Test", "description", "measured"]

LONG: Final = 1_000
"""Characters of a line from which on its turn alone says it."""

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


@final
class Measure(NamedTuple):
    """What the scores of a scenario's tests are: the measure's name, a remark on it, and whether made-up data stand for published ones."""

    name: str = "score"
    remark: str = ""
    made_up: bool = False


class Scenario(BaseModel, ABC):
    """A kind of test. Its pydantic fields are its parameters; `make` creates a test from a random number generator.

    A scripted scenario returns a Script with lines and inherits `play`. A dynamic one returns a Script with an outline and
    overrides `play`. While playing, a scenario only sees its Stage, never the agent, a clock or a file.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ClassVar[str]
    """Unique, lower case with underscores. Also the name of its entry point."""
    skills: ClassVar[tuple[Skill, ...]]
    topics: ClassVar[frozenset[str]] = frozenset()
    """What its messages are about. Tests that share a topic or a scenario are never open at the same time."""
    uninterrupted: ClassVar[bool] = False
    """Whether it is played without a break, exempt from `at_distance`, the switch rate and placement."""
    early: ClassVar[bool] = True
    """Whether all its needles can be placed early."""

    asks_again: ClassVar[bool] = False
    """Whether its last question, asked once more after its farewell, shows what the agent still tells: `grade` then reads the reply to it
    in place of the answer. For scripted scenarios whose farewell asks to forget, and whose question means the same afterwards."""

    @abstractmethod
    def make(self, random: Random) -> Script:
        """Create one test. It must depend only on `random`: the same state gives the same test."""

    def series(self, tests: int, seed: str) -> Iterable[tuple[str, Script]]:
        """Yield the ids (lower case, digits, _ and -) and scripts of a run's tests: by default `tests` of them, numbered from 1.

        Override it if the tests belong together, such as all questions about a text. The same `seed` gives the same tests.
        """
        for number in range(1, tests + 1):
            yield str(number), self.make(Random(f"{seed}/{number}"))

    def chance(self, facts: Mapping[str, Any]) -> float:
        """Return the expected score, in [0, 1], of an agent without memory: of one that answers as `guess` does."""
        return 0.0

    @property
    def measure(self) -> Measure:
        """What its tests' scores are. Headlines say so wherever a score is shown: by default it is just a score."""
        return Measure()

    def changed(self, facts: Mapping[str, Any]) -> Sequence[str]:
        """Return what was changed in the data that a test is made of, in sentences. Results carry each once."""
        return ()

    def numbers(self, facts: Mapping[str, Any]) -> Mapping[str, float]:
        """Return what was planted in a test to make it harder, by name: `similar`, the similar facts told before the question, and
        `updates`, how often what is asked for was changed. Results carry it, and scores are grouped by it."""
        return {}

    def needed(self, facts: Mapping[str, Any], number: int, question: str, needles: Sequence[Exchange]) -> Sequence[Collection[int]]:
        """Return what a right answer to a test's question cannot do without, of the `needles` that it was asked with (`needs`).

        `number` counts the test's questions, from 0. Each collection names a needle, numbered from 0 as in `needles`, or several of which
        one suffices. A needle in none of them may be forgotten, such as one that a later one replaced. By default all are needed. The
        evidence distance is that of the furthest needle that is needed: how far back a memory must reach.
        """
        return [(number,) for number in range(len(needles))]

    def guess(self, message: str) -> str | None:
        """Return the best reply to a message of this scenario for one who knows nothing but this message and public lists.

        None if the message is not this scenario's, or if nothing is better than saying nothing. It must depend only on the
        parameters and the message: the same message gives the same reply. The agent `stateless` answers with it.
        """
        return None

    async def play(self, stage: Stage) -> None:
        """Say the script's lines. A dynamic scenario overrides this."""
        for line, waits in stage.cues():
            if waits:
                await stage.wait()
            if line.reply is not None:
                await stage.tell(line.text, line.reply, at=line.sent_at, needle=line.needle)
            elif line.asks:
                await stage.ask(line.text, needs=line.needs, ideal=line.ideal, at=line.sent_at)
            else:
                await stage.say(line.text, needle=line.needle, ideal=line.ideal)

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        """Grade a played test. A pure function of the facts and the record; by default, the sum of the test's awards."""
        score = min(1.0, math.fsum(award.points for award in record.awards))
        reason = "; ".join(award.why for award in record.awards) or "no points awarded"
        return Grade(score=score, reason=reason, turns=tuple(award.turn for award in record.awards))

    def metrics(self, tests: Sequence[Marked]) -> Mapping[str, float]:
        """Return further figures of a run's tests, by name. Leave out unknown ones."""
        return {}

    def tables(self, runs: Mapping[str, Sequence[Marked]]) -> Sequence[Table]:
        """Return further tables for a report or a comparison. `runs` are the tests of each run, by the run's name."""
        return ()


def measured(scenarios: Iterable[Scenario]) -> tuple[str, list[str]]:
    """Return what the score of a run of these scenarios is called in its headline, and remarks on it."""
    found = {scenario.name: scenario.measure for scenario in scenarios}
    plain = {measure._replace(made_up=False) for measure in found.values()}
    made_up = [name for name, measure in found.items() if measure.made_up]
    whose = "" if len(made_up) == len(found) else f"{', '.join(made_up)}: "
    remarks = [f"{whose}made-up data"] if made_up else []
    if len(plain) == 1:
        (measure,) = plain
        return measure.name, [*([measure.remark] if measure.remark else []), *remarks]
    own = [f"{name}: {', '.join(filter(None, measure[:2]))}" for name, measure in found.items() if measure[:2] != Measure()[:2]]
    return Measure().name, [*own, *remarks]


def description(scenario: Scenario | type[Scenario]) -> str:
    """Return what a scenario tests, in a sentence: the first line of its docstring. That of an instance has its parameters' values."""
    first = (scenario.__doc__ or "").strip().partition("\n")[0]
    if isinstance(scenario, type):
        return first
    values = {name: value for name, value in scenario if isinstance(value, str | int | float)}
    text = re.sub("`([a-z_]+)`", lambda named: str(values.get(named[1], named[1])), first)
    return text[:1].upper() + text[1:]


@final
@dataclass(frozen=True, slots=True)
class Test:
    """One instance of a scenario in a conversation, made from `seed`. `order` is its position among the run's tests."""

    id: str
    scenario: Scenario
    script: Script
    seed: str
    order: int

    @property
    def trunk(self) -> str | None:
        """The id of the test that it branches from; None if it is no branch."""
        return None if self.script.trunk is None else f"{self.scenario.name}-{self.script.trunk}"

    def definition(self) -> dict[str, Any]:
        """Return the complete test as JSON, which a run's commitment covers."""
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
        branching: dict[str, Any] = {"trunk": self.trunk, "tags": list(script.tags), "counts": script.counts}
        content |= {name: value for name, value in branching.items() if value not in (None, [], True)}
        definition: dict[str, Any] = json.loads(json.dumps(content))  # as it is read back: tuples become lists
        return definition

    def opening(self) -> dict[str, Any]:
        """Return its definition as its `open` event has it. Digests stand for what the turns say: all lines of a test that tells a history
        and nothing else, long texts of any other."""
        definition = self.definition()
        if self.script.tells_alone:
            lines = json.dumps(definition["lines"], sort_keys=True, separators=(",", ":"))
            return definition | {"lines": [], "lines_sha256": _sha256(lines)}
        return definition | {"lines": [_shortened(line) for line in definition["lines"]]}


def _shortened(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line with digests in the place of long texts that its turn says."""
    long = {name for name in ("text", "reply") if len(line.get(name, "")) > LONG}
    return {f"{name}_sha256" if name in long else name: _sha256(value) if name in long else value for name, value in line.items()}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(item: Line | Segment) -> dict[str, Any]:
    """Return a line or a segment as JSON; what says that it is told, only if it is."""
    values = {field.name: getattr(item, field.name) for field in fields(item)} | {"pause": item.pause.total_seconds()}
    told: dict[str, Any] = {"reply": values.pop("reply", None), "told": [_iso(date) for date in values.pop("told", ())]}
    told["sent_at"] = _iso(values.pop("sent_at", None))
    return values | {name: value for name, value in told.items() if value not in (None, [])}


def _iso(date: datetime | None) -> str | None:
    return None if date is None else date.isoformat()
