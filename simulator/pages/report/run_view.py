"""The journals of a run prepared for a report: the turns of each conversation, and each test with its turns."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, final

from longspan.simulator.contract.graded_record import Award
from longspan.simulator.journal import events
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.journal.transcript import Change, Evidence, PlayedTurn, Transcript
from longspan.simulator.pages.report.excerpts import MAX_CHARS, TRACE_CHARS, Excerpt
from longspan.simulator.pages.report.night_lines import night_line
from longspan.simulator.pages.report.recall import Recall
from longspan.simulator.results.analysis.distances import PlacedQuestion, questions_with_needs
from longspan.simulator.results.measures.memory_losses import Outcome, need_outcomes
from longspan.simulator.results.result import TestResult

__all__ = ["Cause", "ConversationView", "RunView", "Stretch", "TestView", "TurnView", "with_branches"]

STAGES: Final[Mapping[Outcome, str]] = {
    "not_stored": "not stored",
    "not_retrieved": "not retrieved",
    "forgotten": "forgotten on request",
    "not_shown": "not in the prompt",
    "found_wrong": "retrieved, not answered right",
}
"""The labels of outcomes of needles that did not help (see `Outcome`), in the order of a row."""


@final
@dataclass(slots=True)
class TurnView:
    """One turn of a report.

    `reply` is None if the conversation was interrupted before it. `nights` describe the nights before the turn. `prompt` has the prompts
    sent to models for it, if they were kept. `memory` is the content of its trace (see `Recall`). `recalled` has the turns that the
    memories in its prompt come from. `proves` names the tests whose grade it proves. `seconds` and `dollars` are the latency and the cost
    of the reply, None if unknown.
    """

    conversation: str
    message: events.Message
    text: Excerpt
    jumps: Sequence[events.Jump] = ()
    nights: Sequence[str] = ()
    reply: Excerpt | None = None
    reply_tokens: int = 0
    asked: bool = True
    repeated: bool = False
    refused: bool = False
    seconds: float | None = None
    dollars: float | None = None
    trace: Excerpt | None = None
    prompt: Excerpt | None = None
    memory: Mapping[str, Any] | None = None
    recalled: Sequence[int] = ()
    proves: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, conversation: str, turn: PlayedTurn, max_chars: int = MAX_CHARS) -> TurnView:
        """Return a turn with at most `max_chars` characters each of its message and its reply."""
        shown = cls(conversation, turn.message, Excerpt.of(turn.message.text, max_chars), turn.jumps, list(map(night_line, turn.nights)))
        if (reply := turn.reply) is not None:
            shown.reply, shown.reply_tokens, shown.asked = Excerpt.of(reply.text, max_chars), reply.tokens, reply.asked
            shown.repeated, shown.refused = bool(reply.repeated), bool(reply.refused)
            shown.seconds, shown.dollars = turn.seconds, turn.dollars
            if reply.trace:
                shown.trace = Excerpt.of(json.dumps(reply.trace, ensure_ascii=False, indent=1), TRACE_CHARS)
        return shown

    @property
    def number(self) -> int:
        return self.message.turn

    @property
    def told(self) -> bool:
        """Whether the agent received the turn as history, and it is not filler."""
        return not self.asked and self.message.kind != "filler"

    @property
    def size(self) -> int:
        """The number of characters shown of its message and its reply."""
        return sum(len(text.head) + len(text.tail) for text in (self.text, self.reply) if text is not None)

    @property
    def kinds(self) -> list[str]:
        """The turn's labels: its kind, and `needle` for a needle. A needle does not get the label `line`."""
        if not self.message.needle:
            return [self.message.kind]
        return ["needle"] if self.message.kind == "line" else [self.message.kind, "needle"]

    def data(self) -> dict[str, Any]:
        """Return the turn as JSON, for the page's script. False, empty and unknown values are omitted."""
        message = self.message
        values = {
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
            "refused": self.refused,
            "seconds": self.seconds,
            "dollars": self.dollars,
            "trace": self.trace.data() if self.trace is not None else None,
            "prompt": self.prompt.data() if self.prompt is not None else None,
            "memory": self.memory,
            "proves": self.proves,
            "nights": self.nights,
            "jumps": [{"test": jump.test, "to": f"{jump.to:%Y-%m-%d %H:%M}"} for jump in self.jumps],
        }
        return {key: value for key, value in values.items() if value is not None and value is not False and value != []}


@final
@dataclass(slots=True)
class ConversationView:
    """A conversation of a report: its own turns, also by test, its transcript, and the `trunk` that it branches off.

    Texts are shortened as they are added, so that long replies do not fill the memory.
    """

    id: str
    file: str
    turns: list[TurnView] = field(default_factory=list)
    by_test: dict[str, list[TurnView]] = field(default_factory=lambda: defaultdict(list))
    trunk: ConversationView | None = None
    transcript: Transcript = field(default_factory=Transcript)
    recall: Recall = field(default_factory=Recall)

    @property
    def tokens(self) -> int:
        return self.transcript.tokens

    @property
    def closed(self) -> bool:
        return self.transcript.closed

    @property
    def first(self) -> int:
        """The number of the conversation's first turn. A branch begins after the trunk's last turn."""
        return self.transcript.before

    def holder(self, number: int) -> ConversationView:
        """Return the conversation that contains a turn, given by its number: this one, or its trunk."""
        return self.trunk if self.trunk is not None and number < self.first else self

    def turn(self, number: int) -> TurnView | None:
        """Return a turn by its number, from this conversation or its trunk; None for an unknown number."""
        holder = self.holder(number)
        place = number - holder.first
        return holder.turns[place] if 0 <= place < len(holder.turns) else None

    def shown(self, kept: Mapping[str, Set[int]] | None) -> list[TurnView]:
        """Return the conversation's own turns that a page shows.

        Turns of a history are only shown if they are `kept`, by conversation and number; all are shown if `kept` is None.
        """
        numbers = kept.get(self.id, frozenset()) if kept is not None else None
        return [turn for turn in self.turns if numbers is None or not turn.told or turn.number in numbers]

    def data(self, kept: Mapping[str, Set[int]] | None = None) -> Iterator[dict[str, Any]]:
        """Yield the same turns as JSON, for the page's script."""
        return (turn.data() for turn in self.shown(kept))

    def add(self, transcript: Transcript, change: Change) -> None:
        """Add the next event's change to the transcript."""
        self.transcript = transcript
        if not isinstance(change, PlayedTurn):
            return
        turn = TurnView.of(self.id, change)
        turn.memory, turn.recalled = self.recall.of(change, transcript)
        self.turns[turn.number - self.first :] = [turn]
        if (test := turn.message.test) is not None:
            turns = self.by_test[test]
            turns[len(turns) - (change.reply is not None) :] = [turn]


class Stretch(NamedTuple):
    """Consecutive turns, by their first and last numbers."""

    first: int
    last: int


class Cause(NamedTuple):
    """Where needles were lost: `lost` of the test's needed needles, out of those with a `known` fate."""

    stage: str
    lost: int
    known: int


@final
@dataclass(slots=True)
class TestView:
    """One test of a report: its result, its own turns, the needles it needs, and the turns that prove its grade.

    `expected` has the ideal reply to each question of a scripted test, by turn. `evidence` has the evidence distances of each needle, by
    turn.
    """

    result: TestResult
    conversation: ConversationView | None = None
    facts: Mapping[str, Any] | None = None
    turns: list[TurnView] = field(default_factory=list)
    proof: list[int] = field(default_factory=list)
    expected: dict[int, Excerpt] = field(default_factory=dict)
    evidence: dict[int, list[Evidence]] = field(default_factory=lambda: defaultdict(list))
    awards: Sequence[Award] = field(default_factory=list)
    verdicts: Sequence[events.Verdict] = field(default_factory=list)
    watched: list[Stretch] = field(default_factory=list)

    @classmethod
    def of(cls, result: TestResult, conversations: Mapping[str, ConversationView]) -> TestView:
        conversation = conversations.get(result.conversation) if result.conversation is not None else None
        if conversation is None or (played := conversation.transcript.tests.get(result.id)) is None:
            return cls(result)
        proof = [turn for number in result.turns if number >= 0 and (turn := conversation.turn(number)) is not None]
        needles = [turn for pair in result.evidence if (turn := conversation.turn(pair.needle_turn)) is not None]
        for turn in proof:
            turn.proves.append(result.id)
        own = conversation.by_test[result.id]
        ideals = played.definition.ideal_replies(turn.message for turn in own)
        turns = {turn.number: turn for turn in (*needles, *own, *proof)}
        test = cls(
            result,
            conversation=conversation,
            facts=played.definition.facts,
            turns=[turns[number] for number in sorted(turns)],
            proof=[turn.number for turn in proof],
            expected={turn: Excerpt.of(ideal) for turn, ideal in ideals.items()},
            awards=played.awards,
            verdicts=played.verdicts,
            watched=split_stretches(played.watched),
        )
        for evidence in result.evidence:
            test.evidence[evidence.needle_turn].append(evidence)
        return test

    def holder(self, number: int) -> str:
        """Return the id of the conversation that contains a turn, given by its number: the test's own, or its trunk."""
        return self.conversation.holder(number).id if self.conversation is not None else str(self.result.conversation)

    @property
    def asked(self) -> list[PlacedQuestion]:
        """Its questions that need a needle, with their evidence distances."""
        return questions_with_needs(self.result)

    @property
    def questions(self) -> list[TurnView]:
        """Its questions and the turns that prove its grade; without any, its last turn."""
        return [turn for turn in self.turns if turn.number in self.proof or self._has(turn, "question")] or self.turns[-1:]

    @property
    def needles(self) -> list[TurnView]:
        """Its needles, except those shown among its questions."""
        shown = {turn.number for turn in self.questions}
        return [turn for turn in self.turns if (turn.number in self.evidence or self._has(turn, "needle")) and turn.number not in shown]

    def _has(self, turn: TurnView, kind: str) -> bool:
        return turn.message.test == self.result.id and kind in turn.kinds

    @property
    def stretch(self) -> Stretch | None:
        """The turns from its first to its last own turn, or to the last turn that it watched; None if it was not started."""
        own = [turn.number for turn in self.turns if turn.message.test == self.result.id and turn.message.kind not in events.LEAVING]
        return Stretch(own[0], max([own[-1], *(stretch.last for stretch in self.watched)])) if own else None

    @property
    def causes(self) -> list[Cause]:
        """The stages where its needles were lost, by the first stage that failed; empty without traces or if the test has full marks."""
        lost = Counter(how for _, how in need_outcomes(self.result))
        known = lost.total() - lost["unknown"]
        return [Cause(name, lost[how], known) for how, name in STAGES.items() if lost[how] and self.result.score != 1]

    @property
    def needle_outcomes(self) -> list[tuple[str, int, int]]:
        """The counts for "stored", "retrieved" and "echoed": the pairs of needle and question with this outcome, and those where it is
        known."""
        pairs = self.result.evidence
        fates = {
            "stored": [pair.stored for pair in pairs],
            "retrieved": [pair.retrieved for pair in pairs],
            "echoed": [pair.echoed for pair in pairs],
        }
        known = {name: [value for value in values if value is not None] for name, values in fates.items()}
        return [(name, sum(values), len(values)) for name, values in known.items() if values]


@final
class RunView:
    """A run's conversations, in the order of its manifest, as far as their events have been added."""

    def __init__(self, run: RunFolder) -> None:
        self._files = {id: run.journal(id).relative_to(run.path).as_posix() for id in run.manifest.conversations}
        self._trunks = run.manifest.trunks
        self.conversations: dict[str, ConversationView] = {}
        for id in self._files:
            self.forget(id)

    @classmethod
    def of(cls, run: RunFolder) -> RunView:
        """Read all journals of a run. Raises JournalError if one is damaged."""
        reading = cls(run)
        run.transcripts(reading.take_change)
        return reading

    def take_change(self, conversation: str, transcript: Transcript, change: Change) -> None:
        """Add the next event's change to a conversation's transcript."""
        self.conversations[conversation].add(transcript, change)

    def forget(self, conversation: str) -> None:
        """Drop everything that was added to a conversation."""
        trunk = self.conversations.get(self._trunks.get(conversation, ""))
        recall = Recall(trunk.recall if trunk is not None else None)
        self.conversations[conversation] = ConversationView(conversation, self._files[conversation], trunk=trunk, recall=recall)


def with_branches(conversations: Iterable[ConversationView]) -> dict[str, list[ConversationView]]:
    """Return each trunk's branches that have begun, by the trunk's id. A conversation that is not a branch counts as a trunk."""
    found: dict[str, list[ConversationView]] = {}
    for conversation in conversations:
        if conversation.trunk is None:
            found[conversation.id] = []
        elif conversation.turns:
            found[conversation.trunk.id].append(conversation)
    return found


def split_stretches(numbers: Iterable[int]) -> list[Stretch]:
    """Split rising numbers into stretches of consecutive ones."""
    runs: list[Stretch] = []
    for number in numbers:
        if runs and runs[-1].last == number - 1:
            runs[-1] = Stretch(runs[-1].first, number)
        else:
            runs.append(Stretch(number, number))
    return runs
