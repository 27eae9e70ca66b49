"""The journal's event types. Events record facts; all results are derived from them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal, final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from longspan.simulator.contract.script import Placement
from longspan.simulator.suite.experiment import Experiment

__all__ = [
    "Award",
    "Begin",
    "BranchPoint",
    "Close",
    "End",
    "Event",
    "Jump",
    "Message",
    "Night",
    "Open",
    "Reply",
    "ScenarioError",
    "Snapshot",
    "Verdict",
    "as_json",
    "parse_event",
    "parse_json",
]

MessageKind = Literal["opening", "line", "question", "farewell", "again", "filler"]
"""`again`: a test's last question, repeated after its farewell."""

LEAVING: Final = ("farewell", "again")
"""The kinds of messages after a test has ended."""


LONG_TEXT: Final = 2**20
"""The characters from which a text may need more memory than is left. A process with less room than that for shorter texts fails anyway."""


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    measured: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] | None = None
    """Wall-clock measurements, without nesting. Only these may differ when a conversation is replayed."""


@final
class BranchPoint(BaseModel):
    """The point where a conversation branches off from another `conversation`: before turn `turn`.

    `sum` is the checksum of the last line that both share, and covers all lines before it. Unless the branch is an experiment, this is the
    last line of the other journal.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    conversation: str
    turn: int = Field(ge=0)
    sum: str = Field(pattern=r"^[0-9a-f]{16}$")


@final
class Begin(_Event):
    """The start of a conversation. `run` is the run's name (`Manifest.run_name`), or None in runs of earlier versions.

    `pace_s`: virtual seconds per turn. `format` is 1 in runs of version 0.2.

    A branch's turns, positions and times continue from the end of its `trunk`, and its journal has only its own events. The same is true of
    an `experiment`, which branches off before the trunk's end.
    """

    type: Literal["begin"] = "begin"
    format: Literal[1, 2] = 2
    run: str | None = None
    conversation: str
    span: int
    placement: Placement
    isolated: bool
    tokenizer: str
    starts_at: datetime
    pace_s: float
    trunk: BranchPoint | None = None
    experiment: Experiment | None = None


@final
class Open(_Event):
    """The start of a test at token `position`, with all that grading it needs. `facts` is None if the expected answers are unknown.

    `trunk`: the test that plays the history behind this test's questions. `tags` and `counts` come from its script. Nothing is journaled
    twice. If a test only plays a history, its `lines` are in the events of its turns, and this event has `lines_sha256` instead. For other
    tests, `text_sha256` or `reply_sha256` replaces a long `text` or `reply`. A branch's event omits all that its trunk's event contains
    (see `besides`).
    """

    type: Literal["open"] = "open"
    test: str
    scenario: str
    skills: list[str] = []
    chance: float
    uninterrupted: bool
    parameters: dict[str, Any] = {}
    facts: dict[str, Any] | None = None
    own_facts: dict[str, Any] | None = None
    lines: list[dict[str, Any]]
    lines_sha256: str | None = None
    outline: list[dict[str, Any]]
    farewell: str | None = None
    alone: bool = False
    trunk: str | None = None
    tags: list[str] | None = None
    counts: Literal[False] | None = None
    position: int

    def besides(self, trunk: Open) -> Open:
        """Return the part of a branch's event that differs from its trunk's.

        It lacks `skills` and `parameters`, which belong to the scenario. If the branch has all of the trunk's facts, possibly with other
        values, it has `own_facts` instead of the facts.
        """
        leaves: dict[str, Any] = {"skills": [], "parameters": {}}
        if self.facts is not None and trunk.facts and self.facts.keys() >= trunk.facts.keys():
            own = {name: fact for name, fact in self.facts.items() if name not in trunk.facts or not _same(fact, trunk.facts[name])}
            leaves |= {"facts": None, "own_facts": own}
        return self.model_copy(update=leaves)

    def with_trunk(self, trunk: Open) -> Open:
        """Return the whole event of a branch, whose journal has only the part that differs from its trunk's.

        Raises ValueError if the trunk's test is of another scenario.
        """
        if trunk.scenario != self.scenario:
            raise ValueError(f"test {self.test!r:.80} asks about {trunk.test!r:.80}, which is of another scenario")
        whole: dict[str, Any] = {"skills": self.skills or trunk.skills, "parameters": self.parameters or trunk.parameters}
        if self.own_facts is not None:
            whole |= {"facts": {**(trunk.facts or {}), **self.own_facts}, "own_facts": None}
        return self.model_copy(update=whole)

    def ideal_replies(self, messages: Iterable[Message]) -> dict[int, str]:
        """Return the ideal replies to a scripted test's questions by turn. `messages` are the test's own, in order."""
        pairs = zip(self.lines, messages, strict=False)
        return {
            message.turn: ideal
            for line, message in pairs
            if line.get("asks") and _says(line, message.text) and isinstance(ideal := line.get("ideal"), str)
        }


@final
class Message(_Event):
    """The user's message of turn `turn`: `tokens` tokens, starting at token `start`. Written before the agent is asked.

    `dealt`: the charged tokens before it, which are the same for every agent (see `conductor.CHARGE`). It is None in runs of version 0.2,
    whose schedule depended on the agent's replies. `test` is None for the opening and for filler, except filler in the place of a test that
    ended early. `needle`: later questions may need it. `needs`: the turns of the needles that a question needs.
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
    dealt: int | None = None
    sent_at: datetime
    needs: list[int] | None = None

    @property
    def charged(self) -> int:
        """The charged position of its start, or the actual one in runs of version 0.2."""
        return self.start if self.dealt is None else self.dealt


@final
class Reply(_Event):
    """The reply of turn `turn`, ending at token `end`. If `asked` is False, the turn was added to the agent's history without asking it,
    and the other fields record the cost of that.

    `usage` counts the agent's tokens, and `besides` the tokens of other models that it called. `cost_usd` is the cost of each part in
    dollars, None if its price is unknown. `repeated`: the agent may have received the turn twice, because a crash lost its first reply.
    `refused`: the agent's model refused to answer.
    """

    type: Literal["reply"] = "reply"
    turn: int
    text: str
    tokens: int
    end: int
    asked: bool
    repeated: Literal[True] | None = None
    refused: Literal[True] | None = None
    usage: dict[str, int] | None = None
    besides: dict[str, dict[str, int]] | None = None
    cost_usd: dict[str, float | None] | None = None
    trace: dict[str, Any] | None = None


@final
class Jump(_Event):
    """A jump of the virtual clock, for a test that waits for a time or plays a past turn of that date."""

    type: Literal["jump"] = "jump"
    test: str
    to: datetime


@final
class Night(_Event):
    """A night before turn `turn`: the virtual clock jumps to the next morning. Occurs only in runs with nights.

    `consolidated`: the agent has `consolidate`, and ran it. Its cost is recorded as for a reply, and `trace` lists the memories written.
    `measured` has the size of the agent's memory in bytes, `bytes_before` and `bytes_after`, if the agent can save.
    """

    type: Literal["night"] = "night"
    turn: int
    to: datetime
    consolidated: bool
    usage: dict[str, int] | None = None
    besides: dict[str, dict[str, int]] | None = None
    cost_usd: dict[str, float | None] | None = None
    trace: dict[str, Any] | None = None


@final
class Settled(_Event):
    """The point where the agent's memory has all turns before turn `turn`, and the branches begin.

    Occurs only in the trunk of an agent that reports this cost. It records the remaining cost of adding turns, in the same form as a reply.
    """

    type: Literal["settled"] = "settled"
    turn: int
    usage: dict[str, int] | None = None
    besides: dict[str, dict[str, int]] | None = None
    cost_usd: dict[str, float | None] | None = None
    trace: dict[str, Any] | None = None


@final
class Award(_Event):
    """Points that a dynamic test awards itself for turn `turn`."""

    type: Literal["award"] = "award"
    test: str
    turn: int
    points: float
    why: str


@final
class Verdict(_Event):
    """A verdict that a dynamic test waited for. `by` names the judge and its prompts.

    `holds` is None if the judge could not decide. If the judge `failed`, the test stays unscored.
    """

    type: Literal["verdict"] = "verdict"
    test: str
    statement: str
    holds: bool | None = None
    why: str
    by: str | None = None
    failed: Literal[True] | None = None


@final
class Snapshot(_Event):
    """A snapshot of the agent, taken before turn `turn`."""

    type: Literal["snapshot"] = "snapshot"
    turn: int


@final
class End(_Event):
    """The end of a test, when all of its outline has been said or filled. `watched`: the turns that it watched. `stopped`: it ended before
    its last segment.

    In runs of version 0.2, the event comes as soon as the test ends, and is missing after an error.
    """

    type: Literal["end"] = "end"
    test: str
    watched: list[int]
    stopped: bool


@final
class ScenarioError(_Event):
    """An error that a test raised. Filler takes its places in the conversation, and its `End` follows after them."""

    type: Literal["scenario_error"] = "scenario_error"
    test: str
    error: str


@final
class Close(_Event):
    """The end of a conversation, with its number of turns and tokens."""

    type: Literal["close"] = "close"
    turns: int
    tokens: int


Event = Annotated[
    Begin | Open | Message | Reply | Jump | Night | Settled | Award | Verdict | Snapshot | End | ScenarioError | Close,
    Field(discriminator="type"),
]

_EVENTS: TypeAdapter[Event] = TypeAdapter(Event)


def parse_event(entry: Any) -> Event:
    """Parse a journal line that was decoded from JSON and has no `seq`. Raises pydantic.ValidationError."""
    return _EVENTS.validate_python(entry)


def parse_json(line: bytes) -> Event:
    """Parse a journal line's JSON without its `seq`. Raises pydantic.ValidationError."""
    return _EVENTS.validate_json(line)


def as_json(event: Event) -> bytes:
    """Return an event as JSON, without `measured` and fields that are None. A branch's event also lacks fields that its trunk's event has.

    Raises ValueError for text that is not valid Unicode, and MemoryError.
    """
    if isinstance(event, Message | Reply) and len(event.text) > LONG_TEXT:
        _check_memory(json.dumps(event.text, ensure_ascii=False))
    left_out = {name for name, value in vars(event).items() if value is None or name == "measured"}
    if isinstance(event, Open) and event.trunk is not None:
        left_out |= {name for name in ("skills", "parameters") if not getattr(event, name)}
    return _EVENTS.dump_json(event, exclude=left_out)


def _check_memory(written: str) -> None:
    """Raise MemoryError unless there is room for a text while it is written as JSON.

    pydantic does not raise it: its allocator aborts the process, or waits forever for a lock that it already has. Its buffer doubles when
    it is full, and is copied at the end.
    """
    bytearray(3 * len(written.encode()))


def _says(line: Mapping[str, Any], text: str) -> bool:
    """Return whether a line, which may have a digest instead of its text, says `text`."""
    if "text_sha256" in line:
        return bool(line["text_sha256"] == hashlib.sha256(text.encode()).hexdigest())
    return line.get("text") == text


def _same(one: object, other: object) -> bool:
    """Return whether two values have the same JSON. In JSON, 1, 1.0 and true are different."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
