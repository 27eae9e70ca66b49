"""What a grader gets of a test that was played, and what it gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from longspan.simulator.errors import ScenarioError
from longspan.simulator.messages import Turn
from longspan.simulator.queries import Answered, Holds, JudgeAnswers, Query

__all__ = ["Award", "Exchange", "Grade", "Item", "Marked", "Record", "watched"]


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
    judged: JudgeAnswers = field(default_factory=dict)

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


def watched(turn: Turn) -> Exchange:
    """A turn as a grader sees it, whoever's it was."""
    return Exchange(turn=turn.number, text=turn.text, reply=turn.reply)
