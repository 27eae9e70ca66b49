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

__all__ = ["Award", "Exchange", "Grade", "Measure", "Record", "Scenario", "Skill", "Test", "describe_scenario", "score_name"]

LONG: Final = 1_000
"""Lines of this length or more, in characters, are stored in full only in the events of their turns. Definitions store a digest."""

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
    """The meaning of a scenario's scores: the name of the measure, a remark on it, and whether made-up data replaces published data."""

    name: str = "score"
    remark: str = ""
    made_up: bool = False


class Scenario(BaseModel, ABC):
    """A kind of test. Its pydantic fields are its parameters. `make` creates a test from a random number generator.

    A scripted scenario returns a Script with lines and inherits `play`. A dynamic one returns a Script with an outline and
    overrides `play`. While playing, a scenario only sees its Stage, never the agent, a clock or a file.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ClassVar[str]
    """A unique name in lower case with underscores. Also the name of the entry point."""
    version: ClassVar[int] = 1
    """Increase it when the same seed makes different tests than before. Runs of different versions are not compared or pooled."""
    skills: ClassVar[tuple[Skill, ...]]
    topics: ClassVar[frozenset[str]] = frozenset()
    """The subjects of its messages. Tests that share a topic or a scenario are never open at the same time."""
    uninterrupted: ClassVar[bool] = False
    """Whether tests are played without a break. They are then exempt from `at_distance`, the switch rate and placement."""
    early: ClassVar[bool] = True
    """Whether all needles can be placed early."""

    ladder: ClassVar[bool] = False
    """Whether its tests ask for facts at distances up to nine tenths of the span, and so show how far back an agent remembers. Its items
    must then be rungs (see `contract.rungs`)."""

    compounded: ClassVar[bool] = False
    """Whether its score multiplies or subtracts item scores, so that one wrong item costs more than its share. Results then show how many
    items full marks require."""

    asks_again: ClassVar[bool] = False
    """Whether repeating the last question after the farewell shows what the agent still reveals.

    `grade` then reads the reply to the repeated question as the answer. This is for scripted scenarios whose farewell asks the agent to
    forget, and whose question makes sense afterwards.
    """

    @abstractmethod
    def make(self, random: Random) -> Script:
        """Create one test. It must depend only on `random`: the same state gives the same test."""

    def series(self, tests: int, seed: str) -> Iterable[tuple[str, Script]]:
        """Yield the ids (lower case, digits, _ and -) and scripts of a run's tests. By default there are `tests` of them, numbered from 1.

        Override it if tests belong together, such as all questions about one document. The same `seed` must give the same tests.
        """
        for number in range(1, tests + 1):
            yield str(number), self.make(Random(f"{seed}/{number}"))

    def chance(self, facts: Mapping[str, Any]) -> float:
        """Return the expected score, in [0, 1], of an agent without memory that answers as `guess` does."""
        return 0.0

    @property
    def measure(self) -> Measure:
        """The meaning of its tests' scores. Headlines show it next to every score. By default it is just a score."""
        return Measure()

    def changed(self, facts: Mapping[str, Any]) -> Sequence[str]:
        """Return sentences about changes made to the data behind a test. Results list each sentence once."""
        return ()

    def numbers(self, facts: Mapping[str, Any]) -> Mapping[str, float]:
        """Return counts of the difficulties planted in a test, by name.

        `similar` counts the similar facts stated before the question, and `updates` the changes of the fact in question. Results include
        these figures and group scores by them.
        """
        return {}

    def needed(self, facts: Mapping[str, Any], number: int, question: str, needles: Sequence[Exchange]) -> Sequence[Collection[int]]:
        """Return which `needles` a right answer to a question requires, among those that it was asked with (`needs`).

        `number` counts the test's questions from 0. Each collection names one needle, numbered from 0 as in `needles`, or several if any
        one of them is enough. A needle in no collection may be forgotten, for example because a later one replaced it. By default, all
        needles are required. The evidence distance is the distance to the furthest required needle: how far back a memory must reach.
        """
        return [(number,) for number in range(len(needles))]

    def guess(self, message: str) -> str | None:
        """Return the best reply to a message of this scenario from someone who knows only this message and public lists.

        Return None if the message does not belong to this scenario, or if saying nothing is best. The reply must depend only on the
        parameters and the message. The agent `stateless` uses it.
        """
        return None

    async def play(self, stage: Stage) -> None:
        """Say the script's lines. Dynamic scenarios override this."""
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
        """Grade a played test. Must be a pure function of the facts and the record. By default, the score is the sum of the test's
        awards."""
        score = min(1.0, math.fsum(award.points for award in record.awards))
        reason = "; ".join(award.why for award in record.awards) or "no points awarded"
        return Grade(score=score, reason=reason, turns=tuple(award.turn for award in record.awards))

    def metrics(self, tests: Sequence[Marked]) -> Mapping[str, float]:
        """Return further figures for a run's tests, by name. Omit figures that are unknown."""
        return {}

    def tables(self, runs: Mapping[str, Sequence[Marked]]) -> Sequence[Table]:
        """Return further tables for a report or a comparison. `runs` maps the name of each run to its tests."""
        return ()


def score_name(scenarios: Iterable[Scenario]) -> tuple[str, list[str]]:
    """Return the name that headlines give to the score of a run of these scenarios, and remarks on it."""
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


def describe_scenario(scenario: Scenario | type[Scenario]) -> str:
    """Describe what a scenario tests: the first line of its docstring. For an instance, parameters' values are filled in."""
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
        """The id of the test that this one branches off from, or None."""
        return None if self.script.trunk is None else f"{self.scenario.name}-{self.script.trunk}"

    def definition(self) -> dict[str, Any]:
        """Return the complete test as JSON. A run's commitment covers it."""
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
        definition: dict[str, Any] = json.loads(json.dumps(content))  # a round trip turns tuples into lists, as in a journal
        return definition

    def opening(self) -> dict[str, Any]:
        """Return the definition for the test's `open` event, with digests in place of some lines: their turns store them anyway.

        If the test only plays a history, digests replace all lines, otherwise only long lines and replies.
        """
        definition = self.definition()
        if self.script.tells_alone:
            lines = json.dumps(definition["lines"], sort_keys=True, separators=(",", ":"))
            return definition | {"lines": [], "lines_sha256": _sha256(lines)}
        return definition | {"lines": [_digest_long_strings(line) for line in definition["lines"]]}


def _digest_long_strings(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line with digests in place of long strings. Its turn stores them."""
    long = {name for name in ("text", "reply") if len(line.get(name, "")) > LONG}
    return {f"{name}_sha256" if name in long else name: _sha256(value) if name in long else value for name, value in line.items()}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(item: Line | Segment) -> dict[str, Any]:
    """Return a line or a segment as JSON. Fields about past turns are included only if they are set."""
    values = {field.name: getattr(item, field.name) for field in fields(item)} | {"pause": item.pause.total_seconds()}
    told: dict[str, Any] = {"reply": values.pop("reply", None), "told": [_iso(date) for date in values.pop("told", ())]}
    told["sent_at"] = _iso(values.pop("sent_at", None))
    return values | {name: value for name, value in told.items() if value not in (None, [])}


def _iso(date: datetime | None) -> str | None:
    return None if date is None else date.isoformat()
