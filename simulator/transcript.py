"""The fold: a conversation's events, taken one by one, as turns and tests. Results and all that is shown start here.

Nothing else looks at the types of events. Who wants to follow a conversation reacts to what `Transcript.add` returns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from math import isfinite
from typing import NamedTuple, final

from longspan.simulator import events
from longspan.simulator.errors import JournalError
from longspan.simulator.record import Award, Exchange, Record
from longspan.simulator.script import LAST

__all__ = ["Change", "Evidence", "PlayedTest", "Transcript", "Turn"]


@final
@dataclass(frozen=True, slots=True)
class Evidence:
    """A needle and a question that needs it: their turns, and the tokens from the needle's end to the question.

    Where the agent's traces tell, what became of the needle: grading finds that out (see `Fate`).
    """

    needle_turn: int
    question_turn: int
    tokens: int
    stored: bool | None = None
    retrieved: bool | None = None
    used: bool | None = None


@final
class Turn(NamedTuple):
    """A message and its reply, None while there is none; `jumps` of the clock came before the message."""

    message: events.Message
    reply: events.Reply | None = None
    jumps: tuple[events.Jump, ...] = ()

    @property
    def number(self) -> int:
        return self.message.turn

    @property
    def seconds(self) -> float | None:
        """What the reply took; None where nobody knows."""
        latency = (self.reply.measured or {}).get("latency_s") if self.reply is not None else None
        return float(latency) if isinstance(latency, int | float) and isfinite(latency) else None

    @property
    def used(self) -> list[tuple[str, dict[str, int], float | None]]:
        """Each part's (agent, embedder) usage and dollars."""
        if self.reply is None:
            return []
        costs = self.reply.cost_usd or {}
        parts = ({"agent": self.reply.usage} if self.reply.usage else {}) | (self.reply.besides or {})
        return [(part, usage, costs.get(part)) for part, usage in parts.items()]

    @property
    def dollars(self) -> float | None:
        """What the reply cost; None where nobody knows."""
        costs = list((self.reply.cost_usd or {}).values()) if self.reply is not None else []
        return sum(cost or 0.0 for cost in costs) if costs and None not in costs else None


@final
@dataclass(slots=True)
class PlayedTest:
    """One test as it was played. `start`, `asked` and `until` are token positions: where its first line began, and where
    its last question began and ended; None before there are any.

    `status` is "open", "played" or "scenario_error"; `error` says what the latter was.
    """

    definition: events.Open
    conversation: str
    isolated: bool
    status: str = "open"
    error: str | None = None
    stopped: bool = False
    start: int | None = None
    asked: int | None = None
    until: int | None = None
    exchanges: list[Exchange] = field(default_factory=list)
    watched: list[int] = field(default_factory=list)
    awards: list[Award] = field(default_factory=list)
    verdicts: list[events.Verdict] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)

    @property
    def id(self) -> str:
        return self.definition.test

    @property
    def unjudged(self) -> str | None:
        """Why a judge that it waited for could not decide; None where none failed."""
        return next((verdict.why for verdict in reversed(self.verdicts) if verdict.failed), None)

    @property
    def span_used(self) -> int:
        """Tokens from the start of its first line to the end of its last question (0 while it asked nothing)."""
        return 0 if self.start is None or self.until is None else self.until - self.start

    def exempt(self) -> str | None:
        """Why the test need not end at a distance; None where it must."""
        if self.definition.alone:
            return "alone"
        if self.isolated:
            return "isolated"
        if self.definition.uninterrupted:
            return "uninterrupted"
        return "stopped" if self.stopped else None

    def certified(self, span: int) -> bool:
        """Whether it kept its span of so many tokens; a test that has a conversation to itself has none to keep."""
        return self.until is not None and (self.definition.alone or self.span_used <= span)

    def at_distance(self, span: int) -> bool:
        """Whether its last question began at 0.9 of the span or later, or need not (see `exempt`)."""
        if self.exempt():
            return True
        return self.start is not None and self.asked is not None and self.asked - self.start >= LAST * span


Change = Turn | PlayedTest | None
"""What an event changed: a message began a turn (no reply yet), a reply completed one, a test opened or ended (see its status)."""


@final
class Transcript:
    """Takes a conversation's events one by one and keeps what results are made of.

    `events` were taken. `history` are the turns that have a reply; `waiting` is the one that has none yet. `tests` by id, in the
    order in which they opened; `open` are the ids of those that have not ended. `turns`, `tokens` and `filler_tokens` so far;
    `now` is virtual time. `switches` of `steps` consecutive test messages belong to different tests (uninterrupted scenarios,
    filler and the opening left out); `crowd` is the sum of open tests over `spoken` test messages; `used` is each part's usage
    and dollars, reply by reply.
    """

    def __init__(self) -> None:
        self.begin: events.Begin | None = None
        self.tests: dict[str, PlayedTest] = {}
        self.closed = False
        self.events = self.turns = self.tokens = self.filler_tokens = 0
        self.used: list[tuple[str, dict[str, int], float | None]] = []
        self.switches = self.steps = self.crowd = self.spoken = 0
        self.now: datetime | None = None
        self.open: list[str] = []
        self.waiting: Turn | None = None
        self.history: list[Exchange] = []
        self._ends: list[int] = []
        self._jumps: tuple[events.Jump, ...] = ()
        self._last: str | None = None

    @classmethod
    def of(cls, journal: Iterable[events.Event]) -> Transcript:
        """The transcript of a whole journal."""
        transcript = cls()
        for event in journal:
            transcript.add(event)
        return transcript

    def add(self, event: events.Event) -> Change:
        """Take the next event. Raises JournalError for one that does not follow from those before."""
        try:
            change = self._add(event)
        except (KeyError, IndexError, ValueError) as error:
            raise JournalError(f"the journal contradicts itself at an event of type {event.type}: {_why(error)}") from error
        self.events += 1
        return change

    def record(self, test: PlayedTest) -> Record:
        """What a grader gets of a test."""
        watched = [Exchange(e.turn, e.text, e.reply) for e in (self.history[number] for number in test.watched)]
        return Record(tuple(test.exchanges), tuple(watched), tuple(test.awards))

    def _add(self, event: events.Event) -> Change:
        if self.begin is None:
            if not isinstance(event, events.Begin):
                raise ValueError("a journal begins with one event of type begin")
            self.begin, self.now = event, event.starts_at
            return None
        if self.closed:
            raise ValueError("there is an event after the conversation's close")
        match event:
            case events.Begin():
                raise ValueError("the conversation begins again")
            case events.Open():
                return self._opened(event, self.begin)
            case events.Message():
                return self._asked(event)
            case events.Reply():
                return self._replied(event)
            case events.Jump():
                self._open(event.test)
                self.now = event.to
                self._jumps = (*self._jumps, event)
            case events.Award():
                if event.turn >= self.turns:
                    raise ValueError(f"turn {event.turn} has not been")
                self.tests[event.test].awards.append(Award(event.points, event.why, event.turn))
            case events.Verdict():
                self.tests[event.test].verdicts.append(event)
            case events.End():
                if any(not 0 <= turn < self.turns for turn in event.watched):
                    raise ValueError("it watched turns that have not been")
                test = self._ended(event.test)
                test.status, test.watched, test.stopped = "played", event.watched, event.stopped
                return test
            case events.ScenarioError():
                test = self._ended(event.test)
                test.status, test.error = "scenario_error", event.error
                return test
            case events.Close():
                if (event.turns, event.tokens) != (self.turns, self.tokens):
                    raise ValueError(f"its turns is {event.turns} and its tokens {event.tokens}, after {self.turns} and {self.tokens}")
                self.closed = True
            case events.Snapshot():
                pass
        return None

    def _open(self, test: str) -> PlayedTest:
        if test not in self.open:
            raise ValueError(f"test {test!r:.80} is not open")
        return self.tests[test]

    def _opened(self, event: events.Open, begin: events.Begin) -> PlayedTest:
        if event.test in self.tests:
            raise ValueError(f"test {event.test!r:.80} opens again")
        test = self.tests[event.test] = PlayedTest(event, begin.conversation, begin.isolated)
        self.open.append(event.test)
        return test

    def _ended(self, id: str) -> PlayedTest:
        test = self._open(id)
        self.open.remove(id)
        return test

    def _asked(self, message: events.Message) -> Turn:
        if self.waiting is not None:
            raise ValueError(f"turn {self.waiting.number} has no reply")
        if message.turn != self.turns:
            raise ValueError(f"turn {message.turn} follows {self.turns} others")
        if any(not 0 <= turn < self.turns for turn in message.needs or ()):
            raise ValueError(f"the question needs turns that have not been: {message.needs}")
        if message.test is not None:
            self._heard(message, self.tests[message.test] if message.kind == "farewell" else self._open(message.test))
        self.now = message.sent_at
        self.waiting = Turn(message, None, self._jumps)
        self._jumps = ()
        return self.waiting

    def _heard(self, message: events.Message, test: PlayedTest) -> None:
        end = message.start + message.tokens
        if test.start is None:
            test.start = message.start
        if message.kind == "question":
            test.asked, test.until = message.start, end
            test.evidence.extend(Evidence(turn, message.turn, message.start - self._ends[turn]) for turn in message.needs or ())
        self.spoken += 1
        self.crowd += len(self.open)
        if not test.definition.uninterrupted:
            self.steps += self._last is not None
            self.switches += self._last not in (None, test.id)
            self._last = test.id

    def _replied(self, reply: events.Reply) -> Turn:
        if self.waiting is None:
            raise ValueError("a reply to nothing")
        if reply.turn != self.waiting.number:
            raise ValueError(f"a reply to turn {reply.turn}, which was not asked")
        turn, self.waiting = self.waiting._replace(reply=reply), None
        message, kind = turn.message, turn.message.kind
        self.used.extend(turn.used)
        exchange = Exchange(reply.turn, message.text, reply.text, asks=kind == "question", needle=message.needle)
        self.history.append(exchange)
        self._ends.append(message.start + message.tokens)
        if message.test is not None and kind != "farewell":
            self.tests[message.test].exchanges.append(exchange)
        self.turns += 1
        self.tokens = reply.end
        if kind == "filler":
            self.filler_tokens += reply.end - message.start
        return turn


def _why(error: Exception) -> str:
    return f"there is no {error.args[0]!r:.80}" if isinstance(error, KeyError) else str(error)
