"""The journal's event types. An event says what happened, never what it means: all results are worked out from them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal, final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from longspan.simulator.script import Placement

__all__ = [
    "Award",
    "Begin",
    "Close",
    "End",
    "Event",
    "Jump",
    "Message",
    "Open",
    "Reply",
    "ScenarioError",
    "Snapshot",
    "Verdict",
    "as_json",
    "parse",
    "parse_json",
]

MessageKind = Literal["opening", "line", "question", "farewell", "filler"]


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    measured: dict[str, Any] | None = None
    """Wall-clock figures. The only part that may differ between two plays of one conversation."""


@final
class Begin(_Event):
    """A conversation begins. `pace_s`: virtual seconds a turn takes."""

    type: Literal["begin"] = "begin"
    format: Literal[1] = 1
    conversation: str
    span: int
    placement: Placement
    isolated: bool
    tokenizer: str
    starts_at: datetime
    pace_s: float


@final
class Open(_Event):
    """A test opens at token `position`, with all that grading it needs. `facts` is None where nobody knows what was expected."""

    type: Literal["open"] = "open"
    test: str
    scenario: str
    skills: list[str]
    chance: float
    uninterrupted: bool
    parameters: dict[str, Any]
    facts: dict[str, Any] | None = None
    lines: list[dict[str, Any]]
    outline: list[dict[str, Any]]
    farewell: str | None = None
    alone: bool = False
    position: int

    def ideal_replies(self, said: Iterable[Message]) -> dict[int, str]:
        """The ideal replies to a scripted test's questions, by turn. `said`: its messages, which are its lines in order."""
        pairs = zip(self.lines, said, strict=False)
        return {
            message.turn: ideal
            for line, message in pairs
            if line.get("asks") and line.get("text") == message.text and isinstance(ideal := line.get("ideal"), str)
        }


@final
class Message(_Event):
    """The user's message of turn `turn`, of `tokens` tokens, starting at token `start`; written before the agent is asked.

    `test` is None for the opening and for filler; `needle` tells that a later question may rest on it; `needs` are the
    turns of the needles that a question rests on.
    """

    type: Literal["message"] = "message"
    turn: int
    turn_id: str
    kind: MessageKind
    test: str | None = None
    needle: bool = False
    text: str
    tokens: int
    start: int
    sent_at: datetime
    needs: list[int] | None = None


@final
class Reply(_Event):
    """The reply of turn `turn`, ending at token `end`. `asked` is False where the agent was told of it, not asked.

    `usage` counts the agent's tokens, `besides` those of other models that it paid for; `cost_usd` prices both, by part:
    None for a price that nobody knows. `repeated` is True where the agent may have been given the turn twice: the first
    reply was lost in a crash.
    """

    type: Literal["reply"] = "reply"
    turn: int
    text: str
    tokens: int
    end: int
    asked: bool
    repeated: Literal[True] | None = None
    usage: dict[str, int] | None = None
    besides: dict[str, dict[str, int]] | None = None
    cost_usd: dict[str, float | None] | None = None
    trace: dict[str, Any] | None = None


@final
class Jump(_Event):
    """The virtual clock jumps for a test that waits on time."""

    type: Literal["jump"] = "jump"
    test: str
    to: datetime


@final
class Award(_Event):
    """A dynamic test gives itself points for turn `turn`."""

    type: Literal["award"] = "award"
    test: str
    turn: int
    points: float
    why: str


@final
class Verdict(_Event):
    """A verdict that a dynamic test waited for, `by` whom and with which prompts. `holds` is None where nobody could
    decide; where a judge `failed`, the test stays unscored."""

    type: Literal["verdict"] = "verdict"
    test: str
    statement: str
    holds: bool | None = None
    why: str
    by: str | None = None
    failed: Literal[True] | None = None


@final
class Snapshot(_Event):
    """The agent was saved as it was before turn `turn`."""

    type: Literal["snapshot"] = "snapshot"
    turn: int


@final
class End(_Event):
    """A test has ended. `watched` are the turns it watched; `stopped`: before all of its outline had been said."""

    type: Literal["end"] = "end"
    test: str
    watched: list[int]
    stopped: bool


@final
class ScenarioError(_Event):
    """A test was ended by an error of its own."""

    type: Literal["scenario_error"] = "scenario_error"
    test: str
    error: str


@final
class Close(_Event):
    """The conversation is over: so many turns and tokens."""

    type: Literal["close"] = "close"
    turns: int
    tokens: int


Event = Annotated[
    Begin | Open | Message | Reply | Jump | Award | Verdict | Snapshot | End | ScenarioError | Close,
    Field(discriminator="type"),
]

_EVENTS: TypeAdapter[Event] = TypeAdapter(Event)


def parse(entry: Any) -> Event:
    """The event that a journal line's JSON holds, without its `seq`. Raises pydantic.ValidationError."""
    return _EVENTS.validate_python(entry)


def parse_json(line: bytes) -> Event:
    """The same from JSON."""
    return _EVENTS.validate_json(line)


def as_json(event: Event) -> bytes:
    """An event as JSON, what is None left out. Raises ValueError for text that is no valid Unicode."""
    return _EVENTS.dump_json(event, exclude={name for name, value in vars(event).items() if value is None})
