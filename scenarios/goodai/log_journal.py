"""The journal of a master log: its entries one by one, as events of ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple, final

from longspan.scenarios.goodai.files import Said
from longspan.scenarios.goodai.master_log import Entry, Type
from longspan.scenarios.goodai.restaurant import FIFTH
from longspan.scenarios.goodai.visit import PHASES, grade_visit
from longspan.simulator import events
from longspan.simulator.tokens import EncodingName, Tokenizer

__all__ = ["ENCODING", "LogJournal", "LoggedTest", "Role"]

CONVERSATION: Final = "main"
EPOCH: Final = datetime(1970, 1, 1)
ENCODING: Final[EncodingName] = "cl100k_base"
ASKED: Final = 0.001
"""Seconds that a reply to filler takes at least if the agent was asked for it. One that it is only told of takes none."""
LEAP: Final = 60.0
"""Seconds between a reply and the next message from which on their clock was moved: what their examiner does takes less."""
LANDS: Final = 10.0
"""Seconds after the end of a test's wait by which a leap made for that test is over."""
NOTHING: Final = Entry(0, Type.RESET, 0.0, "")
"""Stands for the message where all have been replied to."""


@final
class Role(NamedTuple):
    """What a message of a test's is: its kind; whether it is a needle; which needles it needs, by number (None: all so far)."""

    kind: events.MessageKind
    needle: bool
    needs: tuple[int, ...] | None = None


@final
@dataclass(slots=True)
class LoggedTest:
    """A test in the log: `roles` of its messages in order; `opened`: its event, wherever it opens; `stopped`: it ended before
    its script did.

    While the log is taken: its turns by number in `said`, those of its `needles`, those it `watched`, and when its wait ends.
    """

    opened: events.Open
    roles: Sequence[Role]
    stopped: bool
    said: dict[int, Said] = field(default_factory=dict)
    needles: list[int] = field(default_factory=list)
    watching: bool = False
    watched: list[int] = field(default_factory=list)
    due: float | None = None

    @property
    def id(self) -> str:
        return self.opened.test


@final
class LogJournal:
    """Takes a log's entries one by one and makes the events of a journal of them. Turns and tokens are counted from 0."""

    def __init__(self, tests: Mapping[str, LoggedTest], span: int) -> None:
        self._tests = tests
        self._span = span
        self._count = Tokenizer(ENCODING).count
        self._events: list[events.Event] = []
        self._open: list[LoggedTest] = []
        self._turn = self._position = 0
        self._now = self._back = 0.0
        self._message = NOTHING

    @property
    def notes(self) -> list[str]:
        """What could not be taken as it stands in the log."""
        return [f"the log's time goes back, by {self._back:g} s at most; virtual time stands still there"] if self._back else []

    def finished(self) -> list[events.Event]:
        """All events. A conversation whose tests have all ended is closed; any other was broken off."""
        if self._open or self._message is not NOTHING:
            return self._events
        return [*self._events, events.Close(turns=self._turn, tokens=self._position)]

    def take(self, entry: Entry) -> None:
        """Take the next entry."""
        if not self._events:
            self._begin(entry.time)
        match entry.type, self._tests.get(entry.test):
            case Type.FILLER, _:
                first = not (self._turn or self._open)
                self._say(entry, None, Role("opening" if first else "filler", needle=False))
            case Type.SENT, LoggedTest() as test:
                test.watching = False  # what it watched for is over
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

    def _say(self, entry: Entry, test: LoggedTest | None, role: Role) -> None:
        leaper = self._leaper(entry.time)
        if leaper is not None:
            self._events.append(events.Jump(test=leaper.id, to=_date(entry.time)))
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

    def _leaper(self, time: float) -> LoggedTest | None:
        """The test that the clock was moved for just before `time`: the one whose wait ends where the clock came to stand."""
        if time - self._now < LEAP:
            return None
        due = {test.due: test for test in self._open if test.due is not None and self._now < test.due <= time <= test.due + LANDS}
        return due[max(due)] if due else None

    def _reply(self, entry: Entry, test: LoggedTest | None) -> None:
        message, self._message = self._message, NOTHING
        tokens = self._count(entry.text)
        self._position += tokens
        latency = entry.time - message.time
        asked = entry.type is Type.REPLY or latency >= ASKED
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
            test.said[self._turn] = Said(message.text, entry.text)
        for watcher in (each for each in self._open if each.watching):
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
    """The turns of the needles that a question needs, of those said before it."""
    return [needles[number] for number in role.needs if number < len(needles)] if role.needs is not None else list(needles)


def _awards(test: LoggedTest) -> list[events.Award]:
    """What a restaurant's visit earns, phase by phase, each at the turn that it is graded by."""
    turns = list(test.said)
    return [
        events.Award(test=test.id, turn=turns[award.turn], points=FIFTH if award.right else 0.0, why=f"{phase}: {award.why}")
        for phase, award in grade_visit(list(test.said.values())).items()
    ]


def _date(time: float) -> datetime:
    """Virtual time from seconds since 1970: that of Greenwich."""
    return EPOCH + timedelta(seconds=time)
