"""Convert a master log, entry by entry, to the events of a journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple, final

from longspan.scenarios.goodai.files import LoggedTurn
from longspan.scenarios.goodai.master_log import LogEvent, Type
from longspan.scenarios.goodai.restaurant import FIFTH
from longspan.scenarios.goodai.visit import PHASES, grade_visit
from longspan.simulator.base.tokens import EncodingName, Tokenizer
from longspan.simulator.journal import events

__all__ = ["ENCODING", "LogJournal", "LoggedTest", "Role"]

CONVERSATION: Final = "main"
EPOCH: Final = datetime(1970, 1, 1)
ENCODING: Final[EncodingName] = "cl100k_base"
MIN_LATENCY: Final = 0.001
"""Minimum seconds for a reply to filler if the agent was asked. A reply that it was only shown takes no time."""
MIN_JUMP: Final = 60.0
"""Seconds between a reply and the next message above which GoodAI's clock must have been moved. Its examiner takes less."""
MAX_OVERSHOOT: Final = 10.0
"""Maximum seconds between the end of a test's wait and the end of a jump made for it."""
NO_MESSAGE: Final = LogEvent(0, Type.RESET, 0.0, "")
"""Placeholder when no message is waiting for a reply."""


@final
class Role(NamedTuple):
    """The role of a test's message: its kind, whether it is a needle, and which needles it needs (None: all so far)."""

    kind: events.MessageKind
    needle: bool
    needs: tuple[int, ...] | None = None


@final
@dataclass(slots=True)
class LoggedTest:
    """A test in the log.

    `opened`: its opening event; the position is set when it opens. `roles`: of its messages, in order. `stopped`: whether it
    ended before its script did. The other attributes change as the log is read: its turns by number (`said`), the turns of
    its `needles`, the turns it `watched`, and when its wait ends (`due`).
    """

    opened: events.Open
    roles: Sequence[Role]
    stopped: bool
    said: dict[int, LoggedTurn] = field(default_factory=dict)
    needles: list[int] = field(default_factory=list)
    watching: bool = False
    watched: list[int] = field(default_factory=list)
    due: float | None = None

    @property
    def id(self) -> str:
        return self.opened.test


@final
class LogJournal:
    """Collects the events of a journal from a log's entries. Turns and tokens are counted from 0."""

    def __init__(self, tests: Mapping[str, LoggedTest], span: int) -> None:
        self._tests = tests
        self._span = span
        self._count = Tokenizer(ENCODING).count
        self._events: list[events.Event] = []
        self._open: list[LoggedTest] = []
        self._turn = self._position = 0
        self._now = self._back = 0.0
        self._message = NO_MESSAGE

    @property
    def notes(self) -> list[str]:
        """Where the journal deviates from the log."""
        return [f"the log's time goes back by up to {self._back:g} s; virtual time stands still there"] if self._back else []

    def finish(self) -> list[events.Event]:
        """Return all events. A conversation whose tests have all ended is closed; any other was interrupted."""
        if self._open or self._message is not NO_MESSAGE:
            return self._events
        return [*self._events, events.Close(turns=self._turn, tokens=self._position)]

    def take(self, entry: LogEvent) -> None:
        """Take the next entry."""
        if not self._events:
            self._begin(entry.time)
        match entry.type, self._tests.get(entry.test):
            case Type.FILLER, _:
                first = not (self._turn or self._open)
                self._say(entry, None, Role("opening" if first else "filler", needle=False))
            case Type.SENT, LoggedTest() as test:
                test.watching = False  # a test that speaks has stopped watching
                self._say(entry, test, test.roles[len(test.said)])
                test.due = None
            case ((Type.REPLY | Type.FILLER_REPLY), test):
                self._reply(entry, test)
            case Type.BEGINS, LoggedTest() as test:
                self._open.append(test)
                self._events.append(test.opened.model_copy(update={"position": self._position}))
            case Type.ENDS, LoggedTest() as test:
                self._end(test)
            case Type.WAIT, LoggedTest() as test:
                test.due = entry.time + entry.wait if entry.wait else None
            case Type.CALLBACK_ON, LoggedTest() as test:
                test.watching = True

    def _begin(self, time: float) -> None:
        self._now = time
        self._events.append(
            events.Begin(
                conversation=CONVERSATION,
                span=self._span,
                placement="uniform",
                isolated=False,
                tokenizer=ENCODING,
                starts_at=_date(time),
                pace_s=0,
            )
        )

    def _say(self, entry: LogEvent, test: LoggedTest | None, role: Role) -> None:
        jumped_for = self._find_jump(entry.time)
        if jumped_for is not None:
            self._events.append(events.Jump(test=jumped_for.id, to=_date(entry.time)))
        self._back = max(self._back, self._now - entry.time)
        self._now = max(self._now, entry.time)
        tokens = self._count(entry.text)
        self._events.append(
            events.Message(
                turn=self._turn,
                turn_id=f"{CONVERSATION}-{self._turn}",
                kind=role.kind,
                test=test.id if test is not None else None,
                needle=role.needle,
                text=entry.text,
                tokens=tokens,
                start=self._position,
                sent_at=_date(self._now),
                needs=_needs(role, test.needles) if test is not None and role.kind == "question" else None,
            )
        )
        self._position += tokens
        self._message = entry
        if test is not None and role.needle:
            test.needles.append(self._turn)

    def _find_jump(self, time: float) -> LoggedTest | None:
        """Return the test that the clock was moved for just before `time`: the one whose wait ends just before it."""
        if time - self._now < MIN_JUMP:
            return None
        due = {test.due: test for test in self._open if test.due is not None and self._now < test.due <= time <= test.due + MAX_OVERSHOOT}
        return due[max(due)] if due else None

    def _reply(self, entry: LogEvent, test: LoggedTest | None) -> None:
        message, self._message = self._message, NO_MESSAGE
        tokens = self._count(entry.text)
        self._position += tokens
        latency = entry.time - message.time
        asked = entry.type is Type.REPLY or latency >= MIN_LATENCY
        self._events.append(
            events.Reply(
                turn=self._turn,
                text=entry.text,
                tokens=tokens,
                end=self._position,
                asked=asked,
                measured={"latency_s": round(latency, 6)} if asked and latency >= 0 else None,
            )
        )
        if test is not None:
            test.said[self._turn] = LoggedTurn(message.text, entry.text)
        for watcher in self._open:
            if watcher.watching:
                watcher.watched.append(self._turn)
        self._now = max(self._now, entry.time)
        self._turn += 1

    def _end(self, test: LoggedTest) -> None:
        self._open.remove(test)
        stopped = test.stopped
        if test.opened.scenario == "restaurant":
            awards = _awards(test)
            self._events.extend(awards)
            stopped = len(awards) < len(PHASES)
        self._events.append(events.End(test=test.id, watched=test.watched, stopped=stopped))


def _needs(role: Role, needles: Sequence[int]) -> list[int]:
    """Return the turns of the needles that a question needs, among those said before it."""
    return [needles[number] for number in role.needs if number < len(needles)] if role.needs is not None else list(needles)


def _awards(test: LoggedTest) -> list[events.Award]:
    """Return the points that a restaurant visit earns, phase by phase, at the turns that decide."""
    turns = list(test.said)
    return [
        events.Award(test=test.id, turn=turns[award.turn], points=FIFTH if award.right else 0.0, why=f"{phase}: {award.why}")
        for phase, award in grade_visit(list(test.said.values())).items()
    ]


def _date(time: float) -> datetime:
    """Return the virtual time for seconds since 1970, in UTC."""
    return EPOCH + timedelta(seconds=time)
