"""One conversation: the conductor decides who speaks, tests speak, the agent replies, and the journal records it."""

from __future__ import annotations

import hashlib
import math
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from random import Random
from typing import Any, Final, NamedTuple, TypeVar, final

import trio

from longspan.simulator.base.blame import is_fault
from longspan.simulator.base.clock import DEFAULT_PACE, DEFAULT_START, VirtualClock
from longspan.simulator.base.errors import AgentError, JournalError, ReplayError, StoppedError, journal_text
from longspan.simulator.base.nights import Nights, morning_after
from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.contract.graded_record import readable
from longspan.simulator.contract.messages import Message, Reply, Turn, Usage
from longspan.simulator.contract.scenario import Test
from longspan.simulator.contract.script import Placement, Segment
from longspan.simulator.contract.stage import AskJudge, Judge, Say, Tell, Verdict, Wait, Watch
from longspan.simulator.filler.filler import Distraction, Filler
from longspan.simulator.journal import events
from longspan.simulator.journal.forks import Fork
from longspan.simulator.journal.journal import Journal
from longspan.simulator.play.conductor import CHARGE, Conductor, End, Fill, Phase, Speak, TestState, cost
from longspan.simulator.play.live_agent import LiveAgent
from longspan.simulator.play.running_test import TestTask
from longspan.simulator.subject.ledger import Costs

__all__ = ["Conversation", "Setting", "Trunk", "places"]

Told = TypeVar("Told", events.Reply, events.Night, events.Settled)

DISK: Final = trio.CapacityLimiter(4)
"""The limit of threads that sync journals. It is separate, so that agents that block threads do not delay them."""

OPENING: Final = (
    "Over the course of this conversation I will bring up many unrelated things: facts about me, small tasks, stories, "
    "questions. Topics will come and go and return much later. Keep in mind what I tell you. Answer questions and follow "
    "instructions with just what they ask for and nothing more; to anything else, a brief acknowledgement will do. "
    "Is that clear?"
)
"""The first message, which explains the situation (GoodAI, section 3.1)."""

MAX_REPLACEMENT: Final = 40
"""Tokens of what a twin says in the place of a needle, at most."""
REPLACEMENTS: Final = 40
"""How many such remarks are tried until one has no word of the needle's."""

SNAPSHOT_EVERY: Final = 100
SNAPSHOT_SHARE: Final = 0.1
"""Turns after which the agent is saved if no test has ended, at least, and as a share of all turns so far: what is saved grows with
them, so that a fixed number would take a long history a time that grows with its square."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The settings of one conversation.

    `span` is in tokens; `pace` is the virtual time that a turn takes. `isolated`: each test of the run has a conversation to
    itself. `alone`: its test has one in any run, and the conversation begins with the test's first line. `branched`: others branch from
    its end, where the agent is saved. `pinned`: tests of which others branch from the first needle, where it is saved too. `nights`:
    how many fall in every span of a conversation that has one. `score_farewells`: after its farewell, a test's last question is asked
    once more, if its scenario allows that. `run`: what its journal calls the run that it is of.
    """

    id: str
    run: str | None = None
    span: int
    placement: Placement = "spread"
    isolated: bool = False
    alone: bool = False
    branched: bool = False
    pinned: frozenset[str] = frozenset()
    tokenizer: Tokenizer
    filler: Filler
    starts_at: datetime = DEFAULT_START
    pace: timedelta = DEFAULT_PACE
    nights: int = 0
    score_farewells: bool = False

    def left_out(self, test: Test) -> str | None:
        """Return why a test cannot keep its span even on its own, or None if it can."""
        if test.script.alone or self.isolated:
            return None
        needed = 0
        for segment in test.script.segments(self.tokenizer.count, self.placement):
            needed = max(needed, math.ceil((segment.at or 0) * self.span)) + cost(segment)
        if needed - CHARGE <= self.span:  # a span ends with the last question, not with its reply
            return None
        return f"{test.id} is left out: its script needs about {needed - CHARGE:,} tokens, but the span is {self.span:,}"

    def schedule_nights(self) -> Nights:
        """Return when nights fall in a conversation that has not begun."""
        return Nights(0 if self.isolated or self.alone else self.nights, self.span)

    def conductor(self, tests: Iterable[Test]) -> Conductor:
        """Return the conductor of a conversation of `tests` that has not begun."""
        return Conductor(map(self._state, tests), self.span, paced=not (self.isolated or self.alone))

    def farewell(self, test: Test) -> Sequence[tuple[events.MessageKind, str]]:
        """Return what a test says when it leaves: nothing, its farewell, or that and its last question once more."""
        if test.script.farewell is None:
            return ()
        asked = [line.text for line in test.script.lines if line.asks] if self.score_farewells and test.scenario.asks_again else []
        return (("farewell", test.script.farewell), *[("again", text) for text in asked[-1:]])

    def _state(self, test: Test) -> TestState:
        said = [self.tokenizer.count(text) for _, text in self.farewell(test)]
        outline = test.script.segments(self.tokenizer.count, self.placement)
        return TestState(test, outline, Segment(0, sum(said), len(said)) if said else None)


def places(filler: Filler, seed: str, outline: Iterable[Segment]) -> Iterator[Distraction]:
    """Yield what is said in the places of an outline if a test leaves them empty, one for each turn. `seed`: the test's, on which
    alone it depends."""
    filler = filler.reseeded(f"{seed}/places")
    for segment in outline:
        share = max(1, segment.tokens // max(1, segment.turns))
        for number in range(segment.turns):
            yield filler.make(share) if number < len(segment.told) else filler.ask(share)


@final
class _Ready(NamedTuple):
    """A reply that is put in the agent's history without asking it, with its tokens."""

    text: str
    tokens: int


@final
@dataclass(frozen=True, slots=True)
class Trunk:
    """The end of a conversation that others branch from: before turn `turns`, at virtual time `now`, at a position in tokens as said and
    as charged (`dealt`). `needles` are the turns of its tests' needles, `opened` how these tests opened, by id; `sum` is its journal's last
    checksum."""

    conversation: str
    turns: int
    position: int
    dealt: int
    now: datetime
    needles: Mapping[str, Sequence[int]]
    opened: Mapping[str, events.Open]
    sum: str

    @property
    def point(self) -> events.BranchPoint:
        """How a branch's journal names it."""
        return events.BranchPoint(conversation=self.conversation, turn=self.turns, sum=self.sum)


@final
@dataclass(frozen=True, slots=True)
class _Utterance:
    """The user's next message, of `tokens` tokens. `ideal` is the reply of a perfect agent; a `ready` reply is not asked for."""

    kind: events.MessageKind
    text: str
    tokens: int
    ideal: str = "OK."
    test: str | None = None
    needle: bool = False
    needs: list[int] | None = None
    ready: _Ready | None = None


def _turn_name(conversation: str) -> str:
    """Return what the turn ids of a conversation begin with. Its id may be a test's name, which the agent must not see."""
    return hashlib.sha256(conversation.encode()).hexdigest()[:8]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{4,}", text.lower()))


def _told(reply: Reply, costs: Costs | None) -> dict[str, Any]:
    """Return what an agent told of its work, as events have it."""
    return {
        "usage": asdict(reply.usage) if reply.usage else None,
        "besides": {part: asdict(usage) for part, usage in reply.besides.items()} or None,
        "cost_usd": costs,
        "trace": reply.trace,
    }


def _undeclared(request: Say | Tell, segment: Segment | None, said: int) -> str | None:
    """Return what a segment, of which `said` turns are over, declares instead of a request; None if it declares the request."""
    if segment is None or said >= segment.turns:
        return "no message"
    tells = said < len(segment.told)
    if isinstance(request, Say):
        return f"{len(segment.told) - said} more turns to tell" if tells else None
    if not tells:
        return "no more turns to tell"
    at = segment.told[said]
    return None if at == request.at else f"a turn told at {at and at.isoformat()}, not at {request.at and request.at.isoformat()},"


@final
class Conversation:
    """Plays `tests` with `agent` and writes `journal`. `listener` is called with every event once it is in the journal.
    `before_turn` is awaited before each turn.

    A journal that already has events is replayed from the beginning, with its replies instead of the agent's. At its end, the
    agent catches up and is asked from then on. `on_fault` is called with a test's id, its error as journaled, and the exception,
    before an error of its own ends a test that is not replayed. A branch goes on from the end of its `trunk`. An experiment goes on from
    its `fork`, and ends with its test; `journal` then has what it shares with the other conversation.
    """

    def __init__(
        self,
        setting: Setting,
        tests: Sequence[Test],
        agent: LiveAgent,
        journal: Journal,
        *,
        judge: Judge | None = None,
        listener: Callable[[events.Event], object] | None = None,
        before_turn: Callable[[], Awaitable[None]] | None = None,
        on_fault: Callable[[str, str, BaseException], object] | None = None,
        trunk: Trunk | None = None,
        fork: Fork | None = None,
    ) -> None:
        self._setting = setting
        self._name = _turn_name(setting.id)
        self._agent = agent
        self._journal = journal
        self._judge = judge
        self._listener = listener
        self._before_turn = before_turn
        self._on_fault = on_fault
        self._clock = VirtualClock(setting.starts_at if trunk is None else trunk.now, setting.pace)
        self._count = setting.tokenizer.count
        self._trunk = trunk
        self._fork = fork
        self._unpinned = set(setting.pinned)
        self._replaced: set[int] = set()
        self._first, self._position, self._dealt = (0, 0, 0) if trunk is None else (trunk.turns, trunk.position, trunk.dealt)
        self._history: list[Turn] = []
        self._saved = self._first
        self._save_due = False
        self._nights = setting.schedule_nights()
        self._stopping = False
        self._tasks = {test.id: TestTask(test, self) for test in tests}
        self._opened = {} if trunk is None else dict(trunk.opened)
        self._conductor = setting.conductor(tests)
        self._conductor.passes(self._dealt)

    @property
    def now(self) -> datetime:
        return self._clock.now

    @property
    def turns(self) -> int:
        return self._first + len(self._history)

    def end(self) -> Trunk:
        """Return where others branch from it, once it has been played to its end."""
        needles = {id: task.needles for id, task in self._tasks.items()}
        return Trunk(self._setting.id, self.turns, self._position, self._dealt, self.now, needles, self._opened, self._journal.sum)

    def stop(self) -> None:
        """Make `play` save the agent and raise StoppedError before the next turn."""
        self._stopping = True

    async def play(self) -> None:
        """Play to the end.

        Raises AgentError if the agent fails, JournalError if the journal cannot be written, ReplayError if it is not that of
        this conversation, StoppedError after `stop`. After an error or a cancellation, the journal can be resumed.
        """
        failure: BaseException | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_synced)
            try:
                await self._converse(nursery)
            except Exception as error:  # raised after all tests have ended, and not in an exception group
                failure = error
            finally:
                for task in self._tasks.values():
                    task.cancel()
                nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _converse(self, nursery: trio.Nursery) -> None:
        setting = self._setting
        self._write(
            events.Begin(
                run=setting.run,
                conversation=setting.id,
                span=setting.span,
                placement=setting.placement,
                isolated=setting.isolated,
                tokenizer=setting.tokenizer.name,
                starts_at=self.now,
                pace_s=setting.pace.total_seconds(),
                trunk=self._fork.point if self._fork is not None else self._trunk.point if self._trunk is not None else None,
                experiment=self._fork.experiment if self._fork is not None else None,
            )
        )
        if not setting.alone:
            await self._pass_turn(_Utterance("opening", OPENING, self._count(OPENING), ideal="Understood."))
        while step := self._conductor.next(self.turns, self.now):
            if self._nights.fall(self.turns, self._conductor.position):
                await self._pass_night()
                continue  # the next step may be another now
            match step:
                case Speak(state, jump):
                    await self._give_floor(state, jump, nursery)
                case End(state):
                    await self._end(state)
                    if self._fork is not None and state.test.id == self._fork.experiment.test and not self._journal.shares:
                        break
                case Fill(tokens, asked):
                    await self._fill(tokens, asked)
        if setting.branched:
            await self._settle()
            await self._snapshot()
        self._write(events.Close(turns=self.turns, tokens=self._position))
        if self._journal.replaying:
            raise ReplayError(f"{self._journal.path}, line {self._journal.seq + 1}: there is an event after the conversation's close")
        self._journal.sync()

    def _write(self, event: events.Event) -> None:
        self._journal.write(event)
        if self._listener is not None:
            self._listener(event)

    async def _keep_synced(self) -> None:
        while True:
            await trio.sleep(1)
            with suppress(JournalError):  # the next write then raises it and ends the conversation
                await trio.to_thread.run_sync(self._journal.sync, limiter=DISK)

    # The floor.

    async def _give_floor(self, state: TestState, jump: datetime | None, nursery: trio.Nursery) -> None:
        """Let a test say its next segment or its farewell. What it leaves unsaid of a segment is filled, in its name."""
        test = state.test
        if jump is not None:
            self._jump(test, jump)
        opens = state.phase is Phase.QUEUED
        segment = self._conductor.speaks(state)
        if state.phase is Phase.LEAVING:
            for kind, text in self._setting.farewell(test):
                await self._exchange(_Utterance(kind, text, self._count(text), test=test.id))
        else:
            task = self._tasks[test.id]
            if opens:
                self._open(test)
                task.needles.extend(self._needles_of(test.trunk))
                await task.start(nursery)
            elif isinstance(task.request, Wait | Watch):
                await task.resume(None)
            said = await self._serve(task, segment)
            task.stopped = said == 0
            for number, place in enumerate(self._places(state, said), said):
                ready = None
                if number < len(segment.told):
                    self._jump(test, segment.told[number])
                    ready = _Ready(place.reply, place.reply_tokens)
                await self._exchange(_Utterance("filler", place.text, place.text_tokens, place.reply, test=test.id, ready=ready))
        self._conductor.said(state, turn=self.turns, now=self.now)
        self._dealt = self._conductor.position

    async def _serve(self, task: TestTask, segment: Segment | None) -> int:
        """Serve a test's requests until it gives up the floor, or until it ends if it has no segment left to say. What its
        outline does not declare is an error of the test. Return how many messages it has said."""
        said, left = 0, segment.tokens if segment else 0
        while True:
            self._write_events(task)
            match task.request:
                case Say() | Tell() as request:
                    ready = _Ready(request.reply, self._count(request.reply)) if isinstance(request, Tell) else None
                    text_tokens = self._count(request.text)
                    tokens = text_tokens + (ready.tokens if ready else 0)
                    if problem := _undeclared(request, segment, said):
                        await task.refuse(f"its outline declares {problem} here, got {request.text!r:.80}")
                    elif tokens > left:
                        await task.refuse(f"its outline declares {left} more tokens here, got {tokens} of {request.text!r:.80}")
                    else:
                        said, left = said + 1, left - tokens
                        await task.resume(await self._say(task, request, text_tokens, ready))
                case AskJudge() as request:
                    await task.resume(await self._verdict(task.test, request))
                case Watch() as watch if watch.turn < self.turns:
                    await task.show(self._history[watch.turn - self._first])
                case Watch() as watch if problem := self._unwatched(watch, segment, said):
                    await task.refuse(problem)
                case Wait() if segment is None:
                    await task.refuse("it waits, but its outline declares nothing after that")
                case _:
                    return said

    def _unwatched(self, watch: Watch, segment: Segment | None, said: int) -> str | None:
        """Return why a segment does not allow a watch, or None if it does. The places it leaves are among the turns."""
        declared = segment.watch if segment else 0
        if isinstance(declared, str):
            return None
        turns = declared + (segment.turns - said if segment and declared else 0)
        if watch.until is not None and watch.until <= self.turns + turns:
            return None
        wanted = "without end" if watch.until is None else f"for {watch.until - watch.turn} turns"
        return f"it watches {wanted}, but its outline declares a watch of {declared} here"

    def _places(self, state: TestState, said: int) -> Iterator[Distraction]:
        """Yield what is said in the places of the next segment that a test leaves empty. It depends on the test's seed alone."""
        *before, segment = state.outline[: state.said + 1]
        if said < segment.turns and not (self._setting.alone or self._setting.isolated):
            filled = sum(earlier.turns for earlier in before) + said
            yield from islice(places(self._setting.filler, state.test.seed, [*before, segment]), filled, None)

    def _needles_of(self, test: str | None) -> Sequence[int]:
        """Return the turns of the needles of a test that another branches from."""
        if test is None:
            return ()
        return self._tasks[test].needles if test in self._tasks or self._trunk is None else self._trunk.needles[test]

    def _open(self, test: Test) -> None:
        opened = events.Open(
            **test.opening(),
            skills=list(test.scenario.skills),
            chance=test.scenario.chance(test.script.facts),
            uninterrupted=test.scenario.uninterrupted,
            position=self._position,
        )
        self._opened[test.id] = opened
        self._write(opened if test.trunk is None else opened.besides(self._opened[test.trunk]))

    def _jump(self, test: Test, to: datetime | None) -> None:
        """Move the clock for a test, unless that time has come."""
        if to is not None and to > self.now:
            self._clock.jump(to)
            self._write(events.Jump(test=test.id, to=to))

    async def _say(self, task: TestTask, request: Say | Tell, tokens: int, ready: _Ready | None) -> str:
        """Say a line of `tokens` tokens, or tell a turn."""
        kind: events.MessageKind = "line"
        ideal, needs = "OK.", None
        if isinstance(request, Tell):
            self._jump(task.test, request.at)
        else:
            ideal = request.ideal
            self._jump(task.test, request.at)
            if request.asks:
                kind, needs = "question", task.needles if request.needs is None else [task.needles[number] for number in request.needs]
        utterance = _Utterance(kind, request.text, tokens, ideal, task.test.id, request.needle, needs, ready)
        if request.needle and kind == "line":
            await self._pin(task.test)
            utterance = self._replacement(task.test, utterance)
        turn = await self._exchange(utterance)
        if request.needle:
            task.needles.append(turn.number)
        return turn.reply

    async def _pin(self, test: Test) -> None:
        """Save the agent before the first needle of a test that others branch from there."""
        if test.id in self._unpinned:
            self._unpinned.remove(test.id)
            self._agent.pin()
            await self._snapshot()

    def _replacement(self, test: Test, needle: _Utterance) -> _Utterance:
        """Return what is said in the place of a needle: in a twin, of its test, small talk that depends on the test's seed alone."""
        fork = self._fork
        if fork is None or fork.experiment.kind != "twin" or test.id != fork.experiment.test:
            return needle
        self._replaced.add(self.turns)
        random, words = Random(f"{test.seed}/twin/{len(self._replaced)}"), _words(needle.text)
        size, shuffled = min(needle.tokens, MAX_REPLACEMENT), random.sample(range(REPLACEMENTS), REPLACEMENTS)
        remarks = (self._setting.filler.remark(size, number) for number in shuffled)
        text = next((text for text in remarks if words.isdisjoint(_words(text))), "Well.")
        return replace(needle, text=text, tokens=self._count(text), needle=False)

    async def _verdict(self, test: Test, request: AskJudge) -> Verdict:
        recorded = self._journal.recorded()
        if isinstance(recorded, events.Verdict):
            verdict = Verdict(recorded.holds, recorded.why, recorded.by, bool(recorded.failed))
        elif self._judge is None:
            verdict = Verdict(None, "no judge")
        else:
            verdict = await self._judge.judge(request.statement, request.text)
        self._write(
            events.Verdict(
                test=test.id,
                statement=request.statement,
                holds=verdict.holds,
                why=verdict.why,
                by=verdict.by,
                failed=verdict.failed or None,
            )
        )
        return verdict

    def _write_events(self, task: TestTask) -> None:
        """Journal a test's awards, and its error if it has failed. The test does not do so itself, because a full disk must not
        count as its error."""
        for award in task.awards:
            self._write(award)
        task.awards.clear()
        if task.error is not None and not task.told:
            task.told = True
            if task.cause is not None and self._on_fault is not None and not self._journal.replaying:
                self._on_fault(task.test.id, task.error, task.cause)
            self._write(events.ScenarioError(test=task.test.id, error=task.error))

    async def _end(self, state: TestState) -> None:
        """End a test that has said, or left unsaid, all of its outline."""
        task = self._tasks[state.test.id]
        if isinstance(task.request, Watch):
            await task.resume(None)
        await self._serve(task, None)
        self._conductor.ends(state)
        self._write(events.End(test=state.test.id, watched=task.watched, stopped=task.stopped))
        self._save_due = True

    async def _fill(self, tokens: int, asked: bool) -> None:
        filler = self._setting.filler
        distraction = filler.ask(tokens) if asked else filler.make(tokens)
        text, size, reply = distraction.text, distraction.text_tokens, distraction.reply
        await self._pass_turn(_Utterance("filler", text, size, reply, ready=None if asked else _Ready(reply, distraction.reply_tokens)))

    async def _pass_turn(self, utterance: _Utterance) -> None:
        """Play a turn that belongs to no test."""
        await self._exchange(utterance)
        self._conductor.passes(utterance.tokens + (utterance.ready.tokens if utterance.ready else CHARGE))
        self._dealt = self._conductor.position

    # Turns.

    async def _exchange(self, utterance: _Utterance) -> Turn:
        """Play one turn: journal the message, ask the agent (or show it the ready reply), and journal the reply."""
        if self._before_turn is not None:
            await self._before_turn()
        if self._save_due or self.turns - self._saved >= max(SNAPSHOT_EVERY, SNAPSHOT_SHARE * self.turns):
            await self._snapshot()
        if self._stopping:
            await self._agent.save_progress()
            self._journal.sync()
            raise StoppedError(f"stopped after turn {self.turns - 1}")
        number, start = self.turns, self._position
        name = self._name
        if self._fork is not None and number < self._fork.point.turn:
            name = _turn_name(self._fork.point.conversation)
        message = Message(utterance.text, self.now, f"{name}-{number}")
        sent_before = self._journal.replaying
        sent = events.Message(
            turn=number,
            turn_id=message.turn_id,
            kind=utterance.kind,
            test=utterance.test,
            needle=utterance.needle,
            text=utterance.text,
            tokens=utterance.tokens,
            start=start,
            dealt=self._dealt,
            sent_at=message.sent_at,
            needs=utterance.needs and [turn for turn in utterance.needs if turn not in self._replaced],
        )
        self._write(sent)
        given = self._fork.gives(sent) if self._fork is not None else None
        event = None
        try:
            event = await self._reply(message, utterance, sent_before) if given is None else self._given(message, utterance, given)
            self._write(event)
        except MemoryError:
            size = f" of {len(event.text):,} characters" if event is not None else ""
            raise AgentError(
                f"turn {number}: the memory is full: it has no room for the agent's reply{size}; limit how long replies may be, or give "
                "longspan more memory, and resume the run"
            ) from None
        self._position = event.end
        self._dealt += utterance.tokens + (utterance.ready.tokens if utterance.ready else CHARGE)
        turn = Turn(number, utterance.test, utterance.text, readable(event.text), message.sent_at, start, event.end, (given or event).asked)
        self._history.append(turn)
        self._clock.tick()
        await self._show(turn)
        return turn

    async def _reply(self, message: Message, utterance: _Utterance, sent_before: bool) -> events.Reply:
        """Return the reply to a message: the recorded one if there is one, or else the agent's."""
        ready = utterance.ready
        ideal = utterance.ideal if ready else await self._amended(utterance.ideal)
        end = self._position + utterance.tokens
        recorded = self._journal.recorded()
        if isinstance(recorded, events.Reply):
            # All that follows from the text is computed again, so that `write` compares it with the record.
            text, tokens = ready or (recorded.text, self._count(recorded.text))
            answered = Reply(text, Usage.of(recorded.usage) if recorded.usage else None, recorded.trace, refused=bool(recorded.refused))
            self._agent.replay(message, answered, asked=ready is None)
            return recorded.model_copy(
                update={"turn": self.turns, "text": text, "tokens": tokens, "end": end + tokens, "asked": ready is None}
            )
        lesion = self._fork if self._lesioned else None
        if lesion is None:
            await self._agent.catch_up()
        else:
            await self._agent.recall(lesion.known([turn.start for turn in self._history], self._position))
        began = time.monotonic()
        if ready:
            took, costs = await self._agent.observe(message, ready.text)
            reply, tokens = replace(took, text=ready.text), ready.tokens
        else:
            reply, costs = await self._agent.reply(message, ideal)
            tokens = self._count(reply.text)
            if lesion is not None:
                self._agent.remember(message, reply)
        return self._as_read(
            events.Reply,
            "reply",
            turn=self.turns,
            text=reply.text,
            tokens=tokens,
            end=end + tokens,
            asked=ready is None,
            repeated=True if sent_before and not self._agent.repeatable else None,
            refused=reply.refused or None,
            measured={**reply.measured, "latency_s": round(time.monotonic() - began, 6)},
            **_told(reply, costs),
        )

    @property
    def _lesioned(self) -> bool:
        return self._fork is not None and self._fork.experiment.kind == "lesion"

    def _given(self, message: Message, utterance: _Utterance, reply: events.Reply) -> events.Reply:
        """Return the reply of a lesion's turn in which nothing is asked again: that of the other conversation."""
        self._agent.replay(message, Reply(reply.text, trace=reply.trace), reply.asked)
        tokens = self._count(reply.text)
        end = self._position + utterance.tokens + tokens
        return events.Reply(turn=self.turns, text=reply.text, tokens=tokens, end=end, asked=False)

    def _as_read(self, kind: type[Told], what: str, **fields: Any) -> Told:
        """Return what the agent told as the event that is read back from the journal. Raises AgentError if it cannot be journaled."""
        try:
            event = kind(**fields)
            if event.trace is not None or event.besides or event.cost_usd:  # the rest is harmless
                read_back = kind.model_validate_json(events.as_json(event))  # tuples become lists
                event = read_back.model_copy(update={"measured": event.measured})
        except Exception as error:
            problem = f"the agent's {what} has usage or a trace that cannot be journaled"
            raise AgentError(f"turn {self.turns}: {problem}: {journal_text(error)}") from error
        return event

    async def _pass_night(self) -> None:
        """Let the agent work until the next morning, and journal what it did, or take that from the record. It is then saved."""
        morning = morning_after(self.now)
        self._clock.jump(morning)
        recorded = self._journal.recorded()
        if isinstance(recorded, events.Night):
            event = recorded.model_copy(update={"turn": self.turns, "to": morning})
            self._agent.replay_nights([morning] if event.consolidated else [])
        elif self._fork is not None and self._lesioned:
            event = events.Night(turn=self.turns, to=morning, consolidated=self.turns in self._fork.nights)
            self._agent.replay_nights([morning] if event.consolidated else [])
        else:
            work, costs = await self._agent.consolidate(morning)
            told = {"consolidated": False} if work is None else {"consolidated": True, "measured": work.measured, **_told(work, costs)}
            event = self._as_read(events.Night, "account of a night", turn=self.turns, to=morning, **told)
        self._write(event)
        self._save_due |= event.consolidated

    async def _settle(self) -> None:
        """Let the agent finish adding what was said, and journal what that took, or take it from the record."""
        recorded = self._journal.recorded()
        if isinstance(recorded, events.Settled):
            self._agent.replay_settling()
            self._write(recorded.model_copy(update={"turn": self.turns}))
        elif recorded is None:
            work, costs = await self._agent.settle()
            if work is not None:
                told = _told(work, costs)
                self._write(self._as_read(events.Settled, "account of settling", turn=self.turns, measured=work.measured or None, **told))

    async def _snapshot(self) -> None:
        """Save the agent and journal the snapshot. In a replay, only follow the journal."""
        self._save_due, self._saved = False, self.turns
        recorded = self._journal.recorded()
        if isinstance(recorded, events.Snapshot) or (recorded is None and await self._agent.save()):
            self._write(events.Snapshot(turn=self.turns))

    # Watching.

    def _watchers(self) -> list[tuple[TestTask, Watch]]:
        """Return the watching tests with their requests, in the order in which they were created."""
        tasks = [self._tasks[state.test.id] for state in self._conductor.open]
        return [(task, task.request) for task in tasks if isinstance(task.request, Watch)]

    async def _amended(self, ideal: str) -> str:
        """Return the current turn's ideal reply as amended by the tests that watch it."""
        for task, watch in self._watchers():
            if watch.amend is not None and watch.turn == self.turns:
                try:
                    ideal = watch.amend(watch.count, ideal)
                except BaseException as error:
                    if not is_fault(error):
                        raise
                    task.fails(error)
                    await task.cancelled()
                    self._write_events(task)
        return ideal

    async def _show(self, turn: Turn) -> None:
        """Show a turn to the watching tests. What a test then says or waits for comes when it next has the floor."""
        for task, watch in self._watchers():
            if watch.turn != turn.number:
                continue
            await task.show(turn)
            while isinstance(request := task.request, AskJudge):
                await task.resume(await self._verdict(task.test, request))
            self._write_events(task)
