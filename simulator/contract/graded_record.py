"""The input of graders (a Record of a played test) and their output (a Grade)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, final

from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from longspan.simulator.base.errors import ScenarioError
from longspan.simulator.contract.messages import Turn
from longspan.simulator.contract.queries import Answered, Holds, JudgeAnswers, Query

__all__ = ["MAX_CHARACTERS", "Award", "Exchange", "Grade", "Item", "Marked", "Record", "grade_view", "readable_part"]

MAX_CHARACTERS: Final = 100_000
"""The number of characters that graders, judges and running tests read from the start of each reply. The longest answers that a scenario
requests, summaries and minutes, have a tenth of that."""


def readable_part(reply: str) -> str:
    """Return the part of a reply to read (see MAX_CHARACTERS)."""
    return reply[:MAX_CHARACTERS]


@final
@dataclass(frozen=True, slots=True)
class Exchange:
    """One turn as a grader sees it.

    `turn` is its number in the conversation. `told`: the agent received the turn as history and did not reply. `sent_at` is its virtual
    time, or None if unknown.
    """

    turn: int
    text: str
    reply: str
    asks: bool = False
    needle: bool = False
    told: bool = False
    sent_at: datetime | None = None


@final
@dataclass(frozen=True, slots=True)
class Award:
    """Points that a dynamic test awarded itself during play."""

    points: float
    why: str
    turn: int


@final
@dataclass(frozen=True, slots=True)
class Record:
    """All that a grader sees of a played test.

    It has the test's own turns, the turns that it watched, the points that it awarded itself, and a judge's answers so far. `unread` names
    replies that are too long for a grader to read in full.
    """

    exchanges: Sequence[Exchange] = ()
    watched: Sequence[Exchange] = ()
    awards: Sequence[Award] = ()
    judged: JudgeAnswers = field(default_factory=dict)
    unread: str = ""

    def readable(self) -> Record:
        """Return this record with each reply cut to the part that graders read."""
        long = [exchange for exchange in (*self.exchanges, *self.watched) if len(exchange.reply) > MAX_CHARACTERS]
        if not long:
            return self
        first, more = long[0], f", and of {len(long) - 1} more replies" if len(long) > 1 else ""
        left = f"{MAX_CHARACTERS:,} of {len(first.reply):,} characters of the reply in turn {first.turn}{more}"
        return replace(
            self,
            exchanges=tuple(map(_readable, self.exchanges)),
            watched=tuple(map(_readable, self.watched)),
            unread=f"only the first {left} were read",
        )

    def said(self, query: Query[Answered]) -> Answered | str | None:
        """Return the judge's answer, the reason (a string) if the judge failed, or None if the judge has not been asked."""
        answer = self.judged.get(query.about)
        return None if answer is None else query.read(answer)

    @property
    def answers(self) -> list[Exchange]:
        """The test's questions with their replies, in order."""
        return [exchange for exchange in self.exchanges if exchange.asks]

    @property
    def answer(self) -> Exchange:
        """The last question with its reply. Raises ScenarioError if the test asked nothing."""
        answers = self.answers
        if not answers:
            raise ScenarioError("the test ended without asking anything")
        return answers[-1]


@final
class Item(BaseModel):
    """An item of a test that is scored separately: a question, a star, an insight.

    `score` is in [0, 1], or None if undecided. Tables group items by `labels`. `numbers` are further figures. One of them is the `floor`,
    if known: the score of a reply that only repeats the question.
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
    """A score in [0, 1] with its reason and the numbers of the turns that prove it.

    A `score` of None means undecided; the test counts as unscored. `asks` lists queries to a judge if the rules could not decide. `score`
    is then the rules' best guess, which counts if there is no judge. Once the judge has answered, the test is graded again, and
    `Record.said` returns the answers. `items` are parts of the test that are scored separately. `chance` is the expected score of guessing,
    if it differs from the value before the test (`Scenario.chance`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    score: float | None
    reason: str
    turns: tuple[int, ...] = ()
    asks: tuple[SkipValidation[Query[Any]], ...] = ()
    items: tuple[Item, ...] = ()
    chance: float | None = Field(default=None, ge=0, le=1)

    def model_post_init(self, context: Any, /) -> None:
        if self.score is not None and not 0 <= self.score <= 1:
            raise ScenarioError(f"a score must be in [0, 1], got {self.score}")

    def unless(self, record: Record, query: Query[Holds], *, holds: float = 1.0, fails: float = 0.0) -> Grade:
        """Let the judge decide: the score is `holds` if the statement holds, else `fails`. Until the judge has answered, return this grade
        as the best guess, with the query added."""
        answer = record.said(query)
        if answer is None:
            return self.model_copy(update={"asks": (*self.asks, query)})
        if isinstance(answer, str):
            return self.model_copy(update={"score": None, "reason": f"{self.reason}; undecided: {answer}"})
        score = holds if answer.holds else fails
        return self.model_copy(update={"score": score, "reason": f"{self.reason}; judged: {answer.why[:500]}"})


@final
@dataclass(frozen=True, slots=True)
class Marked:
    """A graded test as passed to a scenario's tables and metrics."""

    test: str
    score: float | None
    items: tuple[Item, ...] = ()


def grade_view(turn: Turn) -> Exchange:
    """Return a watched turn of any test as a grader sees it."""
    return Exchange(turn=turn.number, text=turn.text, reply=turn.reply, told=not turn.asked, sent_at=turn.sent_at)


def _readable(exchange: Exchange) -> Exchange:
    return exchange if len(exchange.reply) <= MAX_CHARACTERS else replace(exchange, reply=readable_part(exchange.reply))
