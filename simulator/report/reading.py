"""What a report shows of a run's journals: the turns of each conversation, and each test with the turns that concern it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

from longspan.simulator import events
from longspan.simulator.grading.grades import TestResult
from longspan.simulator.record import Award
from longspan.simulator.report.excerpts import MOST, TRACE, Excerpt
from longspan.simulator.run_folder import RunFolder
from longspan.simulator.transcript import Change, Evidence, Transcript
from longspan.simulator.transcript import Turn as Folded

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
    jumps: Sequence[events.Jump] = ()
    reply: Excerpt | None = None
    reply_tokens: int = 0
    asked: bool = True
    repeated: bool = False
    seconds: float | None = None
    dollars: float | None = None
    trace: Excerpt | None = None
    proves: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, conversation: str, turn: Folded, most: int = MOST) -> Turn:
        """A turn with at most `most` characters of its message, and its reply as far as there is one."""
        shown = cls(conversation, turn.message, Excerpt.of(turn.message.text, most), turn.jumps)
        if (reply := turn.reply) is not None:
            shown.reply, shown.reply_tokens, shown.asked = Excerpt.of(reply.text, most), reply.tokens, reply.asked
            shown.repeated, shown.seconds, shown.dollars = bool(reply.repeated), turn.seconds, turn.dollars
            if reply.trace:
                shown.trace = Excerpt.of(json.dumps(reply.trace, ensure_ascii=False, indent=1), TRACE)
        return shown

    @property
    def number(self) -> int:
        return self.message.turn

    @property
    def kinds(self) -> list[str]:
        """What it is called: its kind, and that it is a needle; a needle that is just a line is no more than that."""
        if not self.message.needle:
            return [self.message.kind]
        return ["needle"] if self.message.kind == "line" else [self.message.kind, "needle"]

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
    """What a report shows of a journal: its turns, by test what was `said`, and all else that its transcript tells.

    Texts are shortened as they are heard, so that long replies take no memory.
    """

    id: str
    file: str
    turns: list[Turn] = field(default_factory=list)
    said: dict[str, list[Turn]] = field(default_factory=lambda: defaultdict(list))
    transcript: Transcript = field(default_factory=Transcript)

    @property
    def tokens(self) -> int:
        return self.transcript.tokens

    @property
    def closed(self) -> bool:
        return self.transcript.closed

    def data(self) -> Iterator[dict[str, Any]]:
        """Its turns as JSON, for the script that shows them."""
        return (turn.data() for turn in self.turns)

    def add(self, transcript: Transcript, change: Change) -> None:
        """Take what the next event changed in the transcript."""
        self.transcript = transcript
        if not isinstance(change, Folded):
            return
        turn = Turn.of(self.id, change)
        self.turns[turn.number :] = [turn]
        if (test := turn.message.test) is not None:
            said = self.said[test]
            said[len(said) - (change.reply is not None) :] = [turn]


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
    awards: Sequence[Award] = field(default_factory=list)
    verdicts: Sequence[events.Verdict] = field(default_factory=list)
    watched: list[Stretch] = field(default_factory=list)

    @classmethod
    def of(cls, result: TestResult, conversations: Mapping[str, Conversation]) -> Test:
        conversation = conversations.get(result.conversation) if result.conversation is not None else None
        if conversation is None or (played := conversation.transcript.tests.get(result.id)) is None:
            return cls(result)
        proof = [conversation.turns[number] for number in result.turns if 0 <= number < len(conversation.turns)]
        for turn in proof:
            turn.proves.append(result.id)
        said = conversation.said[result.id]
        ideals = played.definition.ideal_replies(turn.message for turn in said)
        turns = {turn.number: turn for turn in (*said, *proof)}
        test = cls(
            result,
            facts=played.definition.facts,
            turns=[turns[number] for number in sorted(turns)],
            proof=[turn.number for turn in proof],
            expected={turn: Excerpt.of(ideal) for turn, ideal in ideals.items()},
            awards=played.awards,
            verdicts=played.verdicts,
            watched=stretches(played.watched),
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
        self._files = {id: run.journal(id).relative_to(run.path).as_posix() for id in run.manifest.conversations}
        self.conversations = {id: Conversation(id, file) for id, file in self._files.items()}

    @classmethod
    def of(cls, run: RunFolder) -> Reading:
        """Of whole journals. Raises JournalError for a damaged one."""
        reading = cls(run)
        run.transcripts(reading.heard)
        return reading

    def heard(self, conversation: str, transcript: Transcript, change: Change) -> None:
        """Take what the next event changed in a conversation's transcript."""
        self.conversations[conversation].add(transcript, change)

    def forget(self, conversation: str) -> None:
        """Forget all that was heard of a conversation."""
        self.conversations[conversation] = Conversation(conversation, self._files[conversation])


def stretches(numbers: Iterable[int]) -> list[Stretch]:
    """Rising numbers as unbroken stretches."""
    found: list[Stretch] = []
    for number in numbers:
        if found and found[-1].last == number - 1:
            found[-1] = Stretch(found[-1].first, number)
        else:
            found.append(Stretch(number, number))
    return found
