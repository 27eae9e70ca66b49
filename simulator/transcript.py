"""A conversation as its journal tells it: test by test, with spans and evidence distances. All results start here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import final

from longspan.simulator import events
from longspan.simulator.errors import JournalError
from longspan.simulator.grading.needle_fates import Traces
from longspan.simulator.record import Award, Exchange, Record
from longspan.simulator.script import LAST

__all__ = ["Evidence", "Played", "Transcript"]


@final
@dataclass(frozen=True, slots=True)
class Evidence:
    """A needle and a question that needs it: their turns, and the tokens from the needle's end to the question.

    Where the agent's traces tell, what became of the needle (see `Fate`).
    """

    needle_turn: int
    question_turn: int
    tokens: int
    stored: bool | None = None
    retrieved: bool | None = None
    used: bool | None = None


@final
@dataclass(slots=True)
class Played:
    """One test as it was played. `start`, `asked` and `until` are token positions: where its first line began, and where
    its last question began and ended; None before there are any.

    `status` is "open", "played" or "scenario_error"; `error` says what the latter was. `unjudged`: why a judge that it
    waited for could not decide.
    """

    definition: events.Open
    conversation: str
    isolated: bool
    status: str = "open"
    error: str | None = None
    stopped: bool = False
    unjudged: str | None = None
    start: int | None = None
    asked: int | None = None
    until: int | None = None
    exchanges: list[Exchange] = field(default_factory=list)
    watched: list[int] = field(default_factory=list)
    awards: list[Award] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)

    @property
    def id(self) -> str:
        return self.definition.test

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


@final
class Transcript:
    """Takes a conversation's events one by one and keeps what results are made of.

    `tests` by id, in the order in which they opened; `turns`, `tokens` and `filler_tokens` so far; `now` is virtual
    time; `switches` of `steps` consecutive test messages belong to different tests (uninterrupted scenarios, filler
    and the opening left out); `crowd` is the sum of open tests over `spoken` test messages; `used` is each part's (agent,
    embedder) usage and dollars, reply by reply.

    Raises JournalError for events that do not follow from those before.
    """

    def __init__(self) -> None:
        self.begin: events.Begin | None = None
        self.tests: dict[str, Played] = {}
        self.closed = False
        self.turns = self.tokens = self.filler_tokens = 0
        self.used: list[tuple[str, dict[str, int], float | None]] = []
        self.switches = self.steps = self.crowd = self.spoken = 0
        self.now: datetime | None = None
        self.open: list[str] = []
        self._history: list[Exchange] = []
        self._message: events.Message | None = None
        self._ends: list[int] = []
        self._last: str | None = None
        self._traces = Traces()

    @classmethod
    def of(cls, journal: Iterable[events.Event]) -> Transcript:
        """The transcript of a whole journal."""
        transcript = cls()
        for event in journal:
            transcript.add(event)
        return transcript

    def add(self, event: events.Event) -> None:
        """Take the next event."""
        try:
            self._add(event)
        except (KeyError, IndexError, ValueError) as error:
            raise JournalError(f"the journal contradicts itself at an event of type {event.type}: {error!r}") from error

    def record(self, test: Played) -> Record:
        """What a grader gets of a test."""
        watched = [Exchange(e.turn, e.text, e.reply) for e in (self._history[number] for number in test.watched)]
        return Record(tuple(test.exchanges), tuple(watched), tuple(test.awards))

    def _add(self, event: events.Event) -> None:
        match event:
            case events.Begin():
                self.begin, self.now = event, event.starts_at
            case events.Open():
                if self.begin is None:
                    raise ValueError("a test opens before the conversation begins")
                self.tests[event.test] = Played(event, self.begin.conversation, self.begin.isolated)
                self.open.append(event.test)
            case events.Message():
                self._message, self.now = event, event.sent_at
                if event.test is not None:
                    self._heard(event, self.tests[event.test])
            case events.Reply():
                self._replied(event)
            case events.Jump():
                self.now = event.to
            case events.Award():
                self.tests[event.test].awards.append(Award(event.points, event.why, event.turn))
            case events.End():
                test = self.tests[event.test]
                test.status, test.watched, test.stopped = "played", event.watched, event.stopped
                self.open.remove(event.test)
            case events.ScenarioError():
                test = self.tests[event.test]
                test.status, test.error = "scenario_error", event.error
                self.open.remove(event.test)
            case events.Close():
                self.closed = True
            case events.Verdict():
                if event.failed:
                    self.tests[event.test].unjudged = event.why
            case events.Snapshot():
                pass

    def _heard(self, message: events.Message, test: Played) -> None:
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

    def _trace_needles(self, test: Played, question: events.Message, reply: events.Reply) -> None:
        """Say of the needles of a question that was answered what became of them."""
        for at, each in enumerate(test.evidence):
            if each.question_turn == reply.turn:
                said = self._history[each.needle_turn].text
                fate = self._traces.fate(each.needle_turn, said, question.text, reply.text, reply.trace)
                test.evidence[at] = replace(each, **fate._asdict())

    def _replied(self, reply: events.Reply) -> None:
        message = self._message
        if message is None or message.turn != reply.turn or reply.turn != self.turns:
            raise ValueError(f"a reply to turn {reply.turn}, which was not asked")
        kind = message.kind
        self._traces.add(reply.turn, message.turn_id, reply.trace)
        if kind == "question" and message.test is not None:
            self._trace_needles(self.tests[message.test], message, reply)
        costs = reply.cost_usd or {}
        for part, usage in (({"agent": reply.usage} if reply.usage else {}) | (reply.besides or {})).items():
            self.used.append((part, usage, costs.get(part)))
        exchange = Exchange(reply.turn, message.text, reply.text, asks=kind == "question", needle=message.needle)
        self._history.append(exchange)
        self._ends.append(message.start + message.tokens)
        if message.test is not None and kind != "farewell":
            self.tests[message.test].exchanges.append(exchange)
        self.turns += 1
        self.tokens = reply.end
        if kind == "filler":
            self.filler_tokens += reply.end - message.start
