"""What a scenario author writes against: Scenario, Script, Line, Segment, Grade and the Record that is graded."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from longspan.simulator.errors import ScenarioError
from longspan.simulator.messages import Turn
from longspan.simulator.queries import Answered, Holds, Query, Said
from longspan.simulator.tables import Table

if TYPE_CHECKING:
    from longspan.simulator.stage import Stage

__all__ = ["Award", "Exchange", "Grade", "Item", "Line", "Marked", "Placement", "Record", "Scenario", "Script", "Segment", "Skill", "Test"]

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

Placement = Literal["uniform", "early"]
"""Where in its span a test's needles go: spread evenly, as the paper does, or all in the first tenth."""

LAST = 0.9
"""The share of the span after which a test's last question is asked."""

EARLY = 0.1
"""The share of the span over which early placement spreads all needles, so that they lie a span from the question."""


@final
@dataclass(frozen=True, slots=True)
class Line:
    """One thing a scripted test says.

    `ideal` is what a perfect agent would reply; only `oracle` ever sees it. `asks` makes it a question, which needs the
    needles numbered in `needs` (counted from 0 in the order they are said; None: all said before it). A line that is
    neither a needle nor a question carries nothing. `pause` is virtual time that must pass before the line.
    `at` is the share of the span before which it is not said; None leaves it to the run's placement. `together` keeps
    the line in the same breath as the one before: no other test speaks between.
    """

    text: str
    ideal: str = "OK."
    asks: bool = False
    needle: bool = True
    needs: tuple[int, ...] | None = None
    pause: timedelta = timedelta(0)
    at: float | None = None
    together: bool = False


@final
@dataclass(frozen=True, slots=True)
class Segment:
    """What a test says between two waits, as the conductor plans for it.

    `at`: share of the span, from 0 to 1, before which it is not said; `tokens`: the most it says; `replies`: how many
    replies it waits for, `answers` of them to questions (they tend to be longer); `pause`: virtual time that passes
    before it; `by`: the share of the span by which it should have been said, where that is more than it takes.
    """

    at: float
    tokens: int
    replies: int
    answers: int = 0
    pause: timedelta = timedelta(0)
    by: float = 1.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One test, written out: what its grader needs and, for a scripted test, every line; for a dynamic one, an outline.

    `facts` is JSON (dict, list, str, int, float, bool, None): it is journaled when the test opens, and grading reads
    nothing else but the transcript. `farewell` tells the agent to disregard what the test said; it is said after the
    test where another test of the same scenario is still to come. `alone`: the test has a conversation to itself, which
    begins with its first line: no opening message, no filler, no other test, and no span to keep.
    """

    facts: Mapping[str, Any]
    lines: Sequence[Line] = ()
    outline: Sequence[Segment] = ()
    farewell: str | None = None
    alone: bool = False

    def __post_init__(self) -> None:
        if bool(self.lines) == bool(self.outline):
            raise ScenarioError("a script has either lines (scripted) or an outline (dynamic)")
        if self.lines and self.lines[0].together:
            raise ScenarioError("a script's first line cannot be together with the line before")
        for number, line in enumerate(self.lines):
            if wrong := _wrong(line):
                raise ScenarioError(f"line {number} of a script: {wrong}")
        if any(line.pause and (line.together or line is self.lines[0]) for line in self.lines):
            raise ScenarioError("a pause lies between two lines: not before the first one, nor before one that is together with another")
        if not _is_json(dict(self.facts)):
            raise ScenarioError("a script's facts have to be plain JSON: dicts with text keys, lists, text, numbers, true, false, none")

    def starts(self, placement: Placement) -> list[float | None]:
        """For each line, the share of the span before which it is not said; None where it goes on in one breath."""
        heads = [k for k, line in enumerate(self.lines) if not line.together]
        last = len(heads) - 1
        shares: list[float | None] = [None] * len(self.lines)
        for i, k in enumerate(heads):
            at = self.lines[k].at
            if at is None:
                if placement == "early" and i < last:
                    at = EARLY * i / max(1, last - 1) if last > 1 else 0.0
                else:
                    at = LAST * i / max(1, last)
            shares[k] = at
        return shares


    def segments(self, count: Callable[[str], int], placement: Placement) -> list[Segment]:
        """The outline: a dynamic test's own, or that of the lines, measured with `count` (tokens of a text)."""
        if self.outline:
            return list(self.outline)
        found: list[Segment] = []
        for line, at in zip(self.lines, self.starts(placement), strict=True):
            tokens = count(line.text)
            if at is None:
                last = found[-1]
                found[-1] = replace(last, tokens=last.tokens + tokens, replies=last.replies + 1, answers=last.answers + line.asks)
            else:
                found.append(Segment(at, tokens, 1, answers=int(line.asks), pause=line.pause))
        if placement == "early":
            found[:-1] = [replace(segment, by=EARLY + 0.04) for segment in found[:-1]]
        return found


def _wrong(line: object) -> str | None:
    """What is wrong with a line of a script; None where it is one."""
    if not isinstance(line, Line):
        return f"expected a Line, got {type(line).__name__}"
    if not isinstance(line.text, str) or not line.text.strip() or not isinstance(line.ideal, str):
        return "its text and its ideal reply have to be text, and the text has to say something"
    if not _is_json(line.text) or not _is_json(line.ideal):
        return "its text and its ideal reply have to be valid Unicode"
    if not isinstance(line.pause, timedelta) or line.pause < timedelta(0):
        return f"its pause has to be a timedelta of at least 0, got {line.pause!r}"
    if line.at is not None and not (isinstance(line.at, int | float) and 0 <= line.at <= 1):
        return f"at is a share of the span, from 0 to 1, or None, got {line.at!r}"
    if line.needs is not None and not (isinstance(line.needs, tuple) and all(isinstance(each, int) for each in line.needs)):
        return f"needs is a tuple of the needles' numbers, or None, got {line.needs!r}"
    return None


def _is_json(value: object) -> bool:
    """Whether a value comes back from JSON as it went in."""
    match value:
        case dict():
            return all(isinstance(key, str) and _is_json(key) and _is_json(each) for key, each in value.items())
        case list():
            return all(map(_is_json, value))
        case float():
            return math.isfinite(value)
        case str():
            return value.encode("utf-8", "replace").decode() == value  # no lone surrogates
        case _:
            return value is None or isinstance(value, int)


@final
@dataclass(frozen=True, slots=True)
class Exchange:
    """One turn of a test as a grader sees it. `turn` is its number in the conversation."""

    turn: int
    text: str
    reply: str
    asks: bool = False
    needle: bool = False


@final
@dataclass(frozen=True, slots=True)
class Award:
    """Points a dynamic test gave while it played."""

    points: float
    why: str
    turn: int


@final
@dataclass(frozen=True, slots=True)
class Record:
    """All a grader gets of a test that was played: its own turns, the turns it watched, the points it gave itself, and what a
    judge has said so far."""

    exchanges: Sequence[Exchange] = ()
    watched: Sequence[Exchange] = ()
    awards: Sequence[Award] = ()
    judged: Said = field(default_factory=dict)

    def said(self, query: Query[Answered]) -> Answered | str | None:
        """The judge's answer; why there is none, where it failed; None where nobody has been asked."""
        said = self.judged.get(query.about)
        return None if said is None else query.read(said)

    @property
    def answers(self) -> list[Exchange]:
        """The turns that asked something, in order."""
        return [exchange for exchange in self.exchanges if exchange.asks]

    @property
    def answer(self) -> Exchange:
        """The last question and its reply. Raises ScenarioError when the test asked nothing."""
        answers = self.answers
        if not answers:
            raise ScenarioError("the test ended without asking anything")
        return answers[-1]


@final
class Item(BaseModel):
    """A part of a test that has a score of its own: one of its questions, one star, one insight.

    `score` in [0, 1], None where nobody could decide; `labels` are what tables group by, `numbers` further figures.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    score: float | None = Field(ge=0, le=1)
    labels: dict[str, str] = {}
    numbers: dict[str, float] = {}
    note: str = ""
    turn: int | None = None


@final
class Grade(BaseModel):
    """A score in [0, 1] with the reason and the numbers of the turns that prove it.

    `score` None: nobody could decide; the test counts as unscored. `asks`: the rules could not decide, and a judge may; the
    score is then the rules' best guess, which counts where there is no judge. Once it has answered, the test is graded again,
    and `Record.said` has the answers. `items`: the parts of the test that have scores of their own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    score: float | None
    reason: str
    turns: tuple[int, ...] = ()
    asks: tuple[SkipValidation[Query[Any]], ...] = ()
    items: tuple[Item, ...] = ()

    def model_post_init(self, context: Any, /) -> None:
        if self.score is not None and not 0 <= self.score <= 1:
            raise ScenarioError(f"a score lies in [0, 1], got {self.score}")

    def unless(self, record: Record, query: Query[Holds], *, holds: float = 1.0, fails: float = 0.0) -> Grade:
        """This grade as a guess, unless the judge decides: `holds` is the score where its statement holds, `fails` where not."""
        said = record.said(query)
        if said is None:
            return self.model_copy(update={"asks": (*self.asks, query)})
        if isinstance(said, str):
            return self.model_copy(update={"score": None, "reason": f"{self.reason}; undecided: {said}"})
        score = holds if said.holds else fails
        return self.model_copy(update={"score": score, "reason": f"{self.reason}; judged: {said.why[:500]}"})


@final
@dataclass(frozen=True, slots=True)
class Marked:
    """A graded test as a scenario's tables see it."""

    test: str
    score: float | None
    items: tuple[Item, ...] = ()


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


def watched(turn: Turn) -> Exchange:
    """A turn as a grader sees it, whoever's it was."""
    return Exchange(turn=turn.number, text=turn.text, reply=turn.reply)
