"""The transcript of a conversation: folds its events, one by one, into turns and tests.

Results, reports and views are derived from it. Only this module examines event types. Other code that follows a conversation reacts to the
changes that `Transcript.add` returns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Generic, NamedTuple, TypeVar, final

from pydantic import AliasChoices, Field

from longspan.simulator.base.errors import JournalError
from longspan.simulator.base.integers import is_finite
from longspan.simulator.contract.graded_record import Award, Exchange, Record
from longspan.simulator.contract.script import LAST
from longspan.simulator.journal import events
from longspan.simulator.subject.ledger import total_cost

__all__ = ["Change", "Evidence", "PlayedTest", "PlayedTurn", "Transcript", "Transcripts"]

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True)
class Evidence:
    """A needle and a question that relies on it: their turns, and the tokens from the needle's end to the question.

    `tokens` counts the agent's replies with their actual length, and `dealt` with the length charged to every agent; it is None in results
    of version 0.2. `seconds` is the virtual time between the two messages, and `nights` the number of midnights; both are None in results
    of version 0.3. Grading adds the fields of `Fate`, as far as the agent's traces report them, and the scenario's view of the needle (see
    `Scenario.needed`): whether a right answer needs it, and, if one of several needles is enough, the number of that `choice`.
    """

    needle_turn: int
    question_turn: int
    tokens: int
    dealt: int | None = None
    stored: bool | None = None
    retrieved: bool | None = None
    echoed: Annotated[bool | None, Field(validation_alias=AliasChoices("echoed", "used"))] = None  # `used` in results of version 0.3
    rank: int | None = None
    forgotten: bool | None = None
    k: int | None = None
    stored_inferred: bool = False
    retrieved_inferred: bool = False
    needed: bool = True
    choice: int | None = None
    seconds: float | None = None
    nights: int | None = None


@final
class PlayedTurn(NamedTuple):
    """A message and its reply, or None until it arrives. `jumps` and `nights` come directly before the message."""

    message: events.Message
    reply: events.Reply | None = None
    jumps: tuple[events.Jump, ...] = ()
    nights: tuple[events.Night, ...] = ()

    @property
    def number(self) -> int:
        return self.message.turn

    @property
    def seconds(self) -> float | None:
        """The seconds that the reply took, or None if unknown."""
        latency = (self.reply.measured or {}).get("latency_s") if self.reply is not None else None
        return float(latency) if is_finite(latency) else None

    @property
    def used(self) -> list[tuple[str, dict[str, int], float | None]]:
        """The parts (agent, embedder) with their usage and cost in dollars."""
        return _usage_by_part(self.reply) if self.reply is not None else []

    @property
    def dollars(self) -> float | None:
        """The cost of the reply in dollars, or None if unknown."""
        costs = list((self.reply.cost_usd or {}).values()) if self.reply is not None else []
        return total_cost(costs) if costs else None


def _usage_by_part(event: events.Reply | events.Night | events.Settled) -> list[tuple[str, dict[str, int], float | None]]:
    """Return the parts, each with its usage and its cost in dollars."""
    costs = event.cost_usd or {}
    parts: dict[str, dict[str, int]] = {part: {} for part in costs}  # some agents report cost but no tokens
    parts |= ({"agent": event.usage} if event.usage else {}) | (event.besides or {})
    return [(part, usage, costs.get(part)) for part, usage in parts.items()]


@final
@dataclass(slots=True)
class PlayedTest:
    """A test as it was played.

    `start`, `asked` and `until` are token positions: the start of its first line, and the start and end of its last question. They are None
    until then. `dealt`: the charged positions of `start` and `until`. `status` is "open", "played" or "scenario_error", with the message in
    `error`. `refused`: how many of its messages got a refusal. `unanswered`: how many of its questions got a reply that is not an answer.
    `again`: its last question, repeated after its farewell, with the reply.
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
    dealt: tuple[int, int] | None = None
    exchanges: list[Exchange] = field(default_factory=list)
    watched: list[int] = field(default_factory=list)
    refused: int = 0
    unanswered: int = 0
    awards: list[Award] = field(default_factory=list)
    verdicts: list[events.Verdict] = field(default_factory=list)
    again: Exchange | None = None
    evidence: list[Evidence] = field(default_factory=list)

    @property
    def id(self) -> str:
        return self.definition.test

    @property
    def unjudged(self) -> str | None:
        """The reason why a judge that the test waited for failed, or None if none did."""
        return next((verdict.why for verdict in reversed(self.verdicts) if verdict.failed), None)

    @property
    def span_dealt(self) -> int:
        """The charged tokens from the start of its first line to the end of its last question, or 0 without a question."""
        return 0 if self.dealt is None or self.until is None else self.dealt[1] - self.dealt[0]

    @property
    def span_used(self) -> int:
        """The actual tokens from the start of its first line to the end of its last question, or 0 without a question."""
        return 0 if self.start is None or self.until is None else self.until - self.start

    def exempt(self) -> str | None:
        """Return the reason why `at_distance` does not apply to the test, or None if it does."""
        if self.definition.alone:
            return "alone"
        if self.isolated:
            return "isolated"
        if self.definition.uninterrupted:
            return "uninterrupted"
        return "stopped" if self.stopped else None

    @property
    def tells(self) -> bool:
        """Whether the test only plays a history for other tests' questions, and is not graded."""
        lines = self.definition.lines  # in runs of version 0.3, the event of a test that only plays a history has its lines
        told = self.definition.lines_sha256 is not None or (bool(lines) and all("reply" in line for line in lines))
        return self.definition.alone and told

    @property
    def told(self) -> bool:
        """Whether the test belongs to a history's conversation: it plays the history, or asks about it."""
        definition = self.definition
        return (
            self.tells
            or definition.trunk is not None
            or (definition.alone and any({"reply", "reply_sha256"} & line.keys() for line in definition.lines))
        )

    def certified(self, span: int) -> bool | None:
        """Return whether the test stayed within its span, in charged tokens. A test with its own conversation has no span.

        Returns None for a test about a history: the history's length is given.
        """
        if self.told:
            return None
        return self.until is not None and (self.definition.alone or self.span_dealt <= span)

    def at_distance(self, span: int) -> bool:
        """Return whether its last question began at 0.9 of the span or later, in charged tokens. True for exempt tests (see `exempt`)."""
        if self.exempt():
            return True
        return self.asked is not None and self.until is not None and self.span_dealt - (self.until - self.asked) >= LAST * span


class _End(NamedTuple):
    """The position where a message ends, in actual and in charged tokens."""

    said: int
    dealt: int


@final
class _BranchItems(Generic[T]):
    """A trunk's items, followed by a branch's. The trunk's are not copied, because a long history may have thousands of branches."""

    def __init__(self, trunk: _BranchItems[T] | None) -> None:
        self._trunk = trunk
        self._first = 0 if trunk is None else len(trunk)
        self._own: list[T] = []

    def append(self, item: T) -> None:
        self._own.append(item)

    def __len__(self) -> int:
        return self._first + len(self._own)

    def __getitem__(self, number: int) -> T:
        return self._trunk[number] if self._trunk is not None and number < self._first else self._own[number - self._first]


Change = PlayedTurn | PlayedTest | None
"""The change that an event made: a turn began (no reply yet) or was completed, or a test opened or ended (see its status)."""


@final
class Transcript:
    """The state of a conversation after the events added so far. Its results are derived from this.

    A branch continues from its `trunk`: turns, positions and history count from the trunk's beginning, all else from the branch's. `before`
    and `before_tokens` are the trunk's turns and tokens, or 0. An experiment begins with `shared` events of another conversation. Their
    turns and tokens are in `before` and `before_tokens`; their costs and refusals are not counted.

    `events` is the number of events added. `history` has the turns with a reply, and `waiting` is the turn without one. `tests` are by id,
    in the order they opened; `open` lists the ids of tests that have not ended. `turns`, `tokens`, `filler_tokens` and `refused` (refusals)
    are totals so far. `now` is virtual time. `steps` counts pairs of consecutive test messages, and `switches` the pairs from different
    tests (without uninterrupted scenarios, filler and the opening). `crowd` is the number of open tests, summed over the `spoken` test
    messages. `used` is the usage and cost in dollars of each part, reply by reply, including past `nights`.
    """

    def __init__(self, trunk: Transcript | None = None) -> None:
        self.begin: events.Begin | None = None
        self.tests: dict[str, PlayedTest] = {}
        self.closed = False
        self.events = self.turns = self.tokens = self.filler_tokens = self.refused = 0
        self.used: list[tuple[str, dict[str, int], float | None]] = []
        self.switches = self.steps = self.crowd = self.spoken = 0
        self.now: datetime | None = None
        self.open: list[str] = []
        self.waiting: PlayedTurn | None = None
        self.history: _BranchItems[Exchange] = _BranchItems(trunk.history if trunk is not None else None)
        self._ends: _BranchItems[_End] = _BranchItems(trunk._ends if trunk is not None else None)
        self.before = self.before_tokens = self.shared = 0
        if trunk is not None:
            self.before = self.turns = trunk.turns
            self.before_tokens = self.tokens = trunk.tokens
        self._trunk = trunk
        self._alone = False
        self.nights: list[events.Night] = []
        self._jumps: tuple[events.Jump, ...] = ()
        self._last: str | None = None

    @classmethod
    def of(cls, journal: Iterable[events.Event]) -> Transcript:
        """Return the transcript of a whole journal."""
        transcript = cls()
        for event in journal:
            transcript.add(event)
        return transcript

    def add(self, event: events.Event) -> Change:
        """Add the next event. Raises JournalError if it contradicts earlier events."""
        try:
            change = self._add(event)
        except (KeyError, IndexError, ValueError) as error:
            raise JournalError(f"the journal contradicts itself at an event of type {event.type}: {_reason(error)}") from error
        self.events += 1
        return change

    @property
    def own_turns(self) -> int:
        """The number of its turns, without its trunk's."""
        return self.turns - self.before

    @property
    def own_tokens(self) -> int:
        """The tokens of its turns, without its trunk's."""
        return self.tokens - self.before_tokens

    def record(self, test: PlayedTest) -> Record:
        """Return the record of a test for its grader, with each reply cut to the part that graders read."""
        watched = [replace(self.history[number], asks=False, needle=False) for number in test.watched]
        return Record(tuple(test.exchanges), tuple(watched), tuple(test.awards)).readable()

    def _add(self, event: events.Event) -> Change:
        if self.begin is None:
            if not isinstance(event, events.Begin):
                raise ValueError("a journal must begin with an event of type begin")
            if event.experiment is None:
                self._check_trunk(event.trunk)
            elif event.trunk is not None:
                self.before = event.trunk.turn
            self.begin, self.now = event, event.starts_at
            return None
        if self._shares(event):
            self.shared = self.events
        if self.closed:
            raise ValueError("there is an event after the conversation's close")
        match event:
            case events.Begin():
                raise ValueError("the conversation begins again")
            case events.Open():
                return self._open_test(event, self.begin)
            case events.Message():
                return self._add_message(event)
            case events.Reply():
                return self._add_reply(event)
            case events.Jump():
                self._open(event.test)
                self.now = event.to
                self._jumps = (*self._jumps, event)
            case events.Night():
                if event.turn != self.turns or self.waiting is not None:
                    raise ValueError(f"a night before turn {event.turn}, after {self.turns} others")
                self.now = event.to
                self.nights.append(event)
                self.used.extend(_usage_by_part(event) if self._alone or self.begin.experiment is None else ())
            case events.Settled():
                if event.turn != self.turns or self.waiting is not None:
                    raise ValueError(f"it settled before turn {event.turn}, after {self.turns} others")
                self.used.extend(_usage_by_part(event) if self._alone or self.begin.experiment is None else ())
            case events.Award():
                if event.turn >= self.turns:
                    raise ValueError(f"turn {event.turn} has not been played")
                self.tests[event.test].awards.append(Award(event.points, event.why, event.turn))
            case events.Verdict():
                self.tests[event.test].verdicts.append(event)
            case events.End():
                if any(not 0 <= turn < self.turns for turn in event.watched):
                    raise ValueError("it watched turns that have not been played")
                test = self._end_test(event.test)
                test.watched, test.stopped = event.watched, event.stopped
                if test.status == "scenario_error":
                    return None
                test.status = "played"
                return test
            case events.ScenarioError():
                test = self._open(event.test) if self.begin.format > 1 else self._end_test(event.test)
                if test.status != "open":
                    raise ValueError(f"test {event.test!r:.80} fails again")
                test.status, test.error = "scenario_error", event.error
                return test
            case events.Close():
                if (event.turns, event.tokens) != (self.turns, self.tokens):
                    raise ValueError(f"it has {event.turns} turns and {event.tokens} tokens, expected {self.turns} and {self.tokens}")
                self.closed = True
            case events.Snapshot():
                pass
        return None

    def _shares(self, event: events.Event) -> bool:
        """Return whether an event of an experiment is one that it shares with another conversation."""
        if self.begin is None or self.begin.experiment is None or self._alone:
            return False
        own = isinstance(event, events.Close) or (isinstance(event, events.Message) and event.turn >= self.before)
        if own:
            self._alone, self.before_tokens = True, self.tokens
        return not own

    def _check_trunk(self, point: events.BranchPoint | None) -> None:
        if point is None:
            return
        trunk, where = self._trunk, f"it branches from conversation {point.conversation!r:.80}"
        if trunk is None or trunk.begin is None:
            raise ValueError(f"{where}, which has not been read")
        if not trunk.closed or trunk.before or (point.conversation, point.turn) != (trunk.begin.conversation, trunk.turns):
            raise ValueError(f"{where} before turn {point.turn}, where that one does not end")

    def _open(self, test: str) -> PlayedTest:
        if test not in self.open:
            raise ValueError(f"test {test!r:.80} is not open")
        return self.tests[test]

    def _open_test(self, event: events.Open, begin: events.Begin) -> PlayedTest:
        if event.test in self.tests:
            raise ValueError(f"test {event.test!r:.80} opens again")
        if event.trunk is not None:
            event = event.with_trunk(self._find_opening(event.trunk))
        test = self.tests[event.test] = PlayedTest(event, begin.conversation, begin.isolated)
        self.open.append(event.test)
        return test

    def _find_opening(self, id: str) -> events.Open:
        """Return the opening event of the test that plays a history, in this conversation or the trunk."""
        tests = self.tests if self._trunk is None or id in self.tests else self._trunk.tests
        return tests[id].definition

    def _end_test(self, id: str) -> PlayedTest:
        test = self._open(id)
        self.open.remove(id)
        return test

    def _add_message(self, message: events.Message) -> PlayedTurn:
        if self.waiting is not None:
            raise ValueError(f"turn {self.waiting.number} has no reply")
        if message.turn != self.turns:
            raise ValueError(f"turn {message.turn} follows {self.turns} others")
        if any(not 0 <= turn < self.turns for turn in message.needs or ()):
            raise ValueError(f"the question needs turns that have not been played: {message.needs}")
        if message.test is not None:
            test = self.tests[message.test] if message.kind in events.LEAVING else self._open(message.test)
            self._count_step(test)
            if message.kind != "filler":
                self._add_to_test(message, test)
        self.now = message.sent_at
        nights = tuple(night for night in self.nights[-1:] if night.turn == message.turn)
        self.waiting = PlayedTurn(message, None, self._jumps, nights)
        self._jumps = ()
        return self.waiting

    def _add_to_test(self, message: events.Message, test: PlayedTest) -> None:
        end = message.start + message.tokens
        dealt = message.charged
        if test.start is None:
            test.start, test.dealt = message.start, (dealt, dealt)
        if message.kind == "question":
            test.asked, test.until = message.start, end
            test.dealt = (test.dealt or (dealt, dealt))[0], dealt + message.tokens
            for turn in message.needs or ():
                needle, question = self.history[turn].sent_at, message.sent_at
                seconds = None if needle is None or question is None else (question - needle).total_seconds()
                nights = None if needle is None or question is None else (question.date() - needle.date()).days
                distances = message.start - self._ends[turn].said, dealt - self._ends[turn].dealt
                test.evidence.append(Evidence(turn, message.turn, *distances, seconds=seconds, nights=nights))

    def _count_step(self, test: PlayedTest) -> None:
        """Count a message of a test, or filler in its place."""
        self.spoken += 1
        self.crowd += len(self.open)
        if not test.definition.uninterrupted:
            self.steps += self._last is not None
            self.switches += self._last not in (None, test.id)
            self._last = test.id

    def _add_reply(self, reply: events.Reply) -> PlayedTurn:
        if self.waiting is None:
            raise ValueError("a reply to nothing")
        if reply.turn != self.waiting.number:
            raise ValueError(f"a reply to turn {reply.turn}, which was not asked")
        turn, self.waiting = self.waiting._replace(reply=reply), None
        message, kind = turn.message, turn.message.kind
        own = turn.number >= self.before
        self.used.extend(turn.used if own else ())
        exchange = Exchange(reply.turn, message.text, reply.text, kind == "question", message.needle, not reply.asked, message.sent_at)
        self.history.append(exchange)
        self._ends.append(_End(message.start + message.tokens, message.charged + message.tokens))
        self.refused += own and bool(reply.refused)
        if message.test is not None and kind == "again":
            self.tests[message.test].again = replace(exchange, asks=True)
        elif message.test is not None and kind not in ("farewell", "filler"):
            self.tests[message.test].exchanges.append(exchange)
            self.tests[message.test].refused += bool(reply.refused)
            self.tests[message.test].unanswered += kind == "question" and (reply.trace or {}).get("answers") is False
        self.turns += 1
        self.tokens = reply.end
        if kind == "filler" and own:
            self.filler_tokens += reply.end - message.start
        return turn


@final
class Transcripts(dict[str, Transcript]):
    """The transcripts of a run's conversations that have begun, by id."""

    def add(self, conversation: str, event: events.Event) -> Change:
        """Add a conversation's next event. Raises JournalError if it contradicts earlier events."""
        transcript = self.get(conversation)
        if transcript is None:
            point = event.trunk if isinstance(event, events.Begin) else None
            shares = isinstance(event, events.Begin) and event.experiment is not None
            transcript = self[conversation] = Transcript(self.get(point.conversation) if point is not None and not shares else None)
        return transcript.add(event)


def _reason(error: Exception) -> str:
    return f"there is no {error.args[0]!r:.80}" if isinstance(error, KeyError) else str(error)
