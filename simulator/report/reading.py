"""What a report shows of a run's journals: the turns of each conversation, and each test with the turns that concern it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, NamedTuple, final

from longspan.simulator import events
from longspan.simulator.errors import JournalError
from longspan.simulator.grading.grades import TestResult
from longspan.simulator.journal import read_journal
from longspan.simulator.ledger import total_cost
from longspan.simulator.report.excerpts import TRACE, Excerpt
from longspan.simulator.run_folder import RunFolder
from longspan.simulator.transcript import Evidence

__all__ = ["Conversation", "Reading", "Test", "Turn"]


@final
@dataclass(slots=True)
class Turn:
    """One turn as it is shown. `reply` is None where the conversation was broken off before there was one.

    `proves`: the tests whose grade it proves. `seconds` and `dollars` are what the reply took, None where nobody knows.
    """

    conversation: str
    message: events.Message
    text: Excerpt
    jumps: list[events.Jump]
    reply: Excerpt | None = None
    reply_tokens: int = 0
    asked: bool = True
    repeated: bool = False
    seconds: float | None = None
    dollars: float | None = None
    trace: Excerpt | None = None
    proves: list[str] = field(default_factory=list)

    @property
    def number(self) -> int:
        return self.message.turn

    @property
    def kinds(self) -> list[str]:
        """What it is called: its kind, and that it is a needle; a needle that is just a line is no more than that."""
        if not self.message.needle:
            return [self.message.kind]
        return ["needle"] if self.message.kind == "line" else [self.message.kind, "needle"]

    def replied(self, reply: events.Reply) -> None:
        """Take the reply."""
        self.reply, self.reply_tokens, self.asked = Excerpt.of(reply.text), reply.tokens, reply.asked
        self.repeated = bool(reply.repeated)
        latency = (reply.measured or {}).get("latency_s")
        self.seconds = float(latency) if isinstance(latency, int | float) and isfinite(latency) else None
        if reply.cost_usd:
            self.dollars = total_cost(reply.cost_usd.values())
        if reply.trace:
            self.trace = Excerpt.of(json.dumps(reply.trace, ensure_ascii=False, indent=1), TRACE)

    def data(self) -> dict[str, Any]:
        """It as JSON, for the script that shows it. What is not so, or not known, is left out."""
        message = self.message
        found = {
            "number": message.turn,
            "kinds": self.kinds,
            "test": message.test,
            "needs": message.needs,
            "at": message.start,
            "tokens": message.tokens,
            "sent": f"{message.sent_at:%Y-%m-%d %H:%M}",
            "text": self.text.data(),
            "reply": self.reply.data() if self.reply is not None else None,
            "replyTokens": self.reply_tokens,
            "told": not self.asked,
            "repeated": self.repeated,
            "seconds": self.seconds,
            "dollars": self.dollars,
            "trace": self.trace.data() if self.trace is not None else None,
            "proves": self.proves,
            "jumps": [{"test": jump.test, "to": f"{jump.to:%Y-%m-%d %H:%M}"} for jump in self.jumps],
        }
        return {key: value for key, value in found.items() if value is not None and value is not False and value != []}


@final
@dataclass(slots=True)
class Conversation:
    """What a report shows of a journal: its turns, and by test what was `said` and all else.

    Texts are shortened as they are read, so that long replies take no memory.
    """

    id: str
    file: str
    turns: list[Turn] = field(default_factory=list)
    said: dict[str, list[Turn]] = field(default_factory=lambda: defaultdict(list))
    opened: dict[str, events.Open] = field(default_factory=dict)
    awards: dict[str, list[events.Award]] = field(default_factory=lambda: defaultdict(list))
    verdicts: dict[str, list[events.Verdict]] = field(default_factory=lambda: defaultdict(list))
    watched: dict[str, list[int]] = field(default_factory=dict)
    tokens: int = 0
    closed: bool = False
    _jumps: list[events.Jump] = field(default_factory=list)

    def data(self) -> Iterator[dict[str, Any]]:
        """Its turns as JSON, for the script that shows them."""
        return (turn.data() for turn in self.turns)

    def add(self, event: events.Event) -> None:
        """Take the next event. Raises JournalError for one that does not follow from those before."""
        match event:
            case events.Open():
                self.opened[event.test] = event
            case events.Jump():
                self._jumps.append(event)
            case events.Message():
                if event.turn != len(self.turns):
                    raise self._contradiction(f"turn {event.turn} follows {len(self.turns)} others")
                turn = Turn(self.id, event, Excerpt.of(event.text), self._jumps)
                self.turns.append(turn)
                if event.test is not None:
                    self.said[event.test].append(turn)
                self._jumps = []
            case events.Reply():
                if event.turn != len(self.turns) - 1 or self.turns[-1].reply is not None:
                    raise self._contradiction(f"a reply to turn {event.turn}, which was not asked")
                self.turns[-1].replied(event)
                self.tokens = event.end
            case events.Award():
                self.awards[event.test].append(event)
            case events.Verdict():
                self.verdicts[event.test].append(event)
            case events.End():
                self.watched[event.test] = event.watched
            case events.Close():
                self.closed = True

    def _contradiction(self, what: str) -> JournalError:
        return JournalError(f"{self.file}: the journal contradicts itself: {what}")


class Stretch(NamedTuple):
    """Turns that follow each other, by their first and last numbers."""

    first: int
    last: int


@final
@dataclass(slots=True)
class Test:
    """One test as it is shown: its result, what was expected, and its turns with those that prove its grade.

    `expected`: by turn, the ideal reply to a question of a scripted test. `evidence`: by turn, what a needle is evidence of.
    """

    result: TestResult
    facts: Mapping[str, Any] | None = None
    turns: list[Turn] = field(default_factory=list)
    proof: list[int] = field(default_factory=list)
    expected: dict[int, Excerpt] = field(default_factory=dict)
    evidence: dict[int, list[Evidence]] = field(default_factory=lambda: defaultdict(list))
    awards: list[events.Award] = field(default_factory=list)
    verdicts: list[events.Verdict] = field(default_factory=list)
    watched: list[Stretch] = field(default_factory=list)

    @classmethod
    def of(cls, result: TestResult, conversations: Mapping[str, Conversation]) -> Test:
        conversation = conversations.get(result.conversation) if result.conversation is not None else None
        if conversation is None or result.id not in conversation.opened:
            return cls(result)
        proof = [conversation.turns[number] for number in result.turns if 0 <= number < len(conversation.turns)]
        for turn in proof:
            turn.proves.append(result.id)
        said = conversation.said[result.id]
        ideals = conversation.opened[result.id].ideal_replies(turn.message for turn in said)
        turns = {turn.number: turn for turn in (*said, *proof)}
        test = cls(
            result,
            facts=conversation.opened[result.id].facts,
            turns=[turns[number] for number in sorted(turns)],
            proof=[turn.number for turn in proof],
            expected={turn: Excerpt.of(ideal) for turn, ideal in ideals.items()},
            awards=conversation.awards[result.id],
            verdicts=conversation.verdicts[result.id],
            watched=stretches(conversation.watched.get(result.id, [])),
        )
        for each in result.evidence:
            test.evidence[each.needle_turn].append(each)
        return test

    @property
    def fates(self) -> list[tuple[str, int, int]]:
        """What became of its needles, where traces tell: ("stored", of how many pairs of needle and question, of how many known)."""
        known = {name: [getattr(each, name) for each in self.result.evidence] for name in ("stored", "retrieved", "used")}
        told = {name: [value for value in values if value is not None] for name, values in known.items()}
        return [(name, sum(values), len(values)) for name, values in told.items() if values]


@final
class Reading:
    """A run's conversations, in the order of its manifest, as far as their events were `heard`."""

    def __init__(self, run: RunFolder) -> None:
        files = {id: run.journal(id).relative_to(run.path).as_posix() for id in run.manifest.conversations}
        self.conversations = {id: Conversation(id, file) for id, file in files.items()}

    @classmethod
    def of(cls, run: RunFolder) -> Reading:
        """Of whole journals. Raises JournalError for a damaged one."""
        reading = cls(run)
        for id in reading.conversations:
            if run.journal(id).exists():
                for event in read_journal(run.journal(id)):
                    reading.heard(id, event)
        return reading

    def heard(self, conversation: str, event: events.Event) -> None:
        """Take a conversation's next event. Raises JournalError for one that does not follow from those before."""
        self.conversations[conversation].add(event)


def stretches(numbers: Iterable[int]) -> list[Stretch]:
    """Rising numbers as unbroken stretches."""
    found: list[Stretch] = []
    for number in numbers:
        if found and found[-1].last == number - 1:
            found[-1] = Stretch(found[-1].first, number)
        else:
            found.append(Stretch(number, number))
    return found
