"""One conversation: the conductor decides who speaks, tests speak, the agent replies, and the journal records it."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Final, final

import trio

from longspan.simulator.base.blame import is_fault
from longspan.simulator.base.clock import VirtualClock
from longspan.simulator.base.errors import AgentError, JournalError, ReplayError, StoppedError
from longspan.simulator.base.nights import morning_after
from longspan.simulator.contract.graded_record import readable_part
from longspan.simulator.contract.messages import Message, Turn
from longspan.simulator.contract.scenario import Test
from longspan.simulator.contract.script import Segment
from longspan.simulator.contract.stage import AskJudge, Judge, Say, Tell, Verdict, Wait, Watch
from longspan.simulator.filler.filler import Distraction
from longspan.simulator.journal import events
from longspan.simulator.journal.forks import Fork
from longspan.simulator.journal.journal import Journal
from longspan.simulator.play.conductor import CHARGE, End, Fill, Phase, Speak, TestState
from longspan.simulator.play.live_agent import LiveAgent
from longspan.simulator.play.places import fill_places
from longspan.simulator.play.positions import Positions, Trunk
from longspan.simulator.play.respondents import PendingMessage, Ready, make_respondent
from longspan.simulator.play.running_test import TestTask
from longspan.simulator.play.setting import OPENING, Setting
from longspan.simulator.play.twin import Replacements

__all__ = ["Conversation", "name_turns"]

DISK: Final = trio.CapacityLimiter(4)
"""The limiter for threads that sync journals. It is separate, so that agents that block threads cannot delay syncing."""

SNAPSHOT_EVERY: Final = 100
SNAPSHOT_SHARE: Final = 0.1
"""The number of turns between snapshots if no test has ended: a minimum, and a share of all turns so far. Snapshots grow with the
conversation, so with a fixed number, the time to save a long history would grow with its square."""


@final
@dataclass(frozen=True, slots=True)
class _Utterance:
    """The user's next message, of `tokens` tokens. `ideal` is the reply of a perfect agent. With a `ready` reply, the agent is not
    asked."""

    kind: events.MessageKind
    text: str
    tokens: int
    ideal: str = "OK."
    test: str | None = None
    needle: bool = False
    needs: list[int] | None = None
    ready: Ready | None = None

    @property
    def charge(self) -> int:
        """The tokens charged for the turn."""
        return self.tokens + (self.ready.tokens if self.ready else CHARGE)


def name_turns(conversation: str) -> str:
    """Return the prefix of a conversation's turn ids. It is a hash, because the id may be a test's name, which the agent must not see."""
    return hashlib.sha256(conversation.encode()).hexdigest()[:8]


def _find_undeclared(request: Say | Tell, segment: Segment | None, said: int) -> str | None:
    """Return the declaration that a request violates after `said` turns of a segment, or None if the segment declares the request."""
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
    """Plays `tests` with `agent` and writes `journal`.

    `listener` is called with every event once it is in the journal. `before_turn` is awaited before each turn. `on_fault` is called when a
    test's error ends it, except in a replay, with the test's id, the error as journaled, and the exception.

    A journal that has events already is replayed from the beginning, with its replies instead of the agent's. At its end, the agent catches
    up, and answers from then on. A branch continues from the end of its `trunk`. An experiment continues from its `fork` and ends with its
    test; `journal` then includes the part that it shares with the other conversation.
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
        self._name = name_turns(setting.id)
        self._agent = agent
        self._journal = journal
        self._listener = listener
        self._before_turn = before_turn
        self._on_fault = on_fault
        self._clock = VirtualClock(setting.starts_at if trunk is None else trunk.now, setting.pace)
        self._count = setting.tokenizer.count
        self._trunk = trunk
        self._fork = fork
        self._respondent = make_respondent(journal, agent, judge, fork, self._count)
        self._replacements = Replacements(fork, setting.filler, self._count)
        self._conductor = setting.conductor(tests)
        self._positions = Positions(self._conductor, trunk)
        self._nights = setting.schedule_nights()
        self._tasks = {test.id: TestTask(test, self) for test in tests}
        self._opened = {} if trunk is None else dict(trunk.opened)
        self._unpinned = set(setting.pinned)
        self._saved = self.turns
        self._save_due = False
        self._stopping = False

    @property
    def now(self) -> datetime:
        return self._clock.now

    @property
    def turns(self) -> int:
        return self._positions.turns

    def end(self) -> Trunk:
        """Return the point where others branch off. Call it once the conversation has been played to its end."""
        needles = {id: task.needles for id, task in self._tasks.items()}
        at = self._positions
        return Trunk(self._setting.id, at.turns, at.said, at.dealt, self.now, needles, self._opened, self._journal.sum)

    def stop(self) -> None:
        """Make `play` save the agent and raise StoppedError before the next turn."""
        self._stopping = True

    async def play(self) -> None:
        """Play to the end.

        Raises AgentError if the agent fails, JournalError if the journal cannot be written, ReplayError if the journal belongs to another
        conversation, and StoppedError after `stop`. After an error or a cancellation, the journal can be resumed.
        """
        failure: BaseException | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_synced)
            try:
                await self._converse(nursery)
            except Exception as error:  # kept until all tests have ended, and raised outside of Trio's exception group
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
                continue  # the night may change the next step
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
        self._write(events.Close(turns=self.turns, tokens=self._positions.said))
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
            with suppress(JournalError):  # the next write raises it again and ends the conversation
                await trio.to_thread.run_sync(self._journal.sync, limiter=DISK)

    # The floor.

    async def _give_floor(self, state: TestState, jump: datetime | None, nursery: trio.Nursery) -> None:
        """Let a test say its next segment or its farewell. Filler, in the test's name, replaces anything that it leaves unsaid."""
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
                    ready = Ready(place.reply, place.reply_tokens)
                await self._exchange(_Utterance("filler", place.text, place.text_tokens, place.reply, test=test.id, ready=ready))
        self._conductor.finish_segment(state, turn=self.turns, now=self.now)

    async def _serve(self, task: TestTask, segment: Segment | None) -> int:
        """Serve a test's requests until it gives up the floor, or, after its last segment, until it ends.

        Return the number of messages said. A request that the outline does not declare is an error of the test.
        """
        said, left = 0, segment.tokens if segment else 0
        while True:
            self._write_events(task)
            match task.request:
                case Say() | Tell() as request:
                    ready = Ready(request.reply, self._count(request.reply)) if isinstance(request, Tell) else None
                    text_tokens = self._count(request.text)
                    tokens = text_tokens + (ready.tokens if ready else 0)
                    if problem := _find_undeclared(request, segment, said):
                        await task.refuse(f"its outline declares {problem} here, got {request.text!r:.80}")
                    elif tokens > left:
                        await task.refuse(f"its outline declares {left} more tokens here, got {tokens} of {request.text!r:.80}")
                    else:
                        said, left = said + 1, left - tokens
                        await task.resume(await self._say(task, request, text_tokens, ready))
                case AskJudge() as request:
                    await task.resume(await self._verdict(task.test, request))
                case Watch() as watch if watch.turn < self.turns:
                    await task.show(self._positions.turn(watch.turn))
                case Watch() as watch if problem := self._reason_not_to_watch(watch, segment, said):
                    await task.refuse(problem)
                case Wait() if segment is None:
                    await task.refuse("it waits, but its outline declares nothing after that")
                case _:
                    return said

    def _reason_not_to_watch(self, watch: Watch, segment: Segment | None, said: int) -> str | None:
        """Return why a segment does not allow a watch, or None if it does. Turns that fill the test's empty places count as well."""
        declared = segment.watch if segment else 0
        if isinstance(declared, str):
            return None
        turns = declared + (segment.turns - said if segment and declared else 0)
        if watch.until is not None and watch.until <= self.turns + turns:
            return None
        wanted = "without end" if watch.until is None else f"for {watch.until - watch.turn} turns"
        return f"it watches {wanted}, but its outline declares a watch of {declared} here"

    def _places(self, state: TestState, said: int) -> Iterator[Distraction]:
        """Yield the filler for the places that a test leaves empty in its next segment. It depends on the test's seed alone."""
        if said < state.outline[state.said].turns and not (self._setting.alone or self._setting.isolated):
            *before, segment = state.outline[: state.said + 1]
            filled = sum(earlier.turns for earlier in before) + said
            yield from islice(fill_places(self._setting.filler, state.test.seed, [*before, segment]), filled, None)

    def _needles_of(self, test: str | None) -> Sequence[int]:
        """Return the turns of the needles of a test that another test branches off from."""
        if test is None:
            return ()
        return self._tasks[test].needles if test in self._tasks or self._trunk is None else self._trunk.needles[test]

    def _open(self, test: Test) -> None:
        opened = events.Open(
            **test.opening(),
            skills=list(test.scenario.skills),
            chance=test.scenario.chance(test.script.facts),
            uninterrupted=test.scenario.uninterrupted,
            position=self._positions.said,
        )
        self._opened[test.id] = opened
        self._write(opened if test.trunk is None else opened.besides(self._opened[test.trunk]))

    def _jump(self, test: Test, to: datetime | None) -> None:
        """Move the clock forward to a test's time. Does nothing if that time has passed."""
        if to is not None and to > self.now:
            self._clock.jump(to)
            self._write(events.Jump(test=test.id, to=to))

    async def _say(self, task: TestTask, request: Say | Tell, tokens: int, ready: Ready | None) -> str:
        """Say a line of `tokens` tokens, or play a past turn."""
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
            if (text := self._replacements.of(task.test, self.turns, request.text)) is not None:
                utterance = replace(utterance, text=text, tokens=self._count(text), needle=False)
        turn = await self._exchange(utterance)
        if request.needle:
            task.needles.append(turn.number)
        return turn.reply

    async def _pin(self, test: Test) -> None:
        """Save the agent before the first needle of a test that others branch off from there."""
        if test.id in self._unpinned:
            self._unpinned.remove(test.id)
            self._agent.pin()
            await self._snapshot()

    async def _verdict(self, test: Test, request: AskJudge) -> Verdict:
        verdict = await self._respondent.verdict(request.statement, request.text)
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
        """Journal a test's awards, and its error if it has failed.

        The test does not do this itself: otherwise a full disk would count as an error of the test.
        """
        for award in task.awards:
            self._write(award)
        task.awards.clear()
        if task.error is not None and not task.told:
            task.told = True
            if task.cause is not None and self._on_fault is not None and not self._journal.replaying:
                self._on_fault(task.test.id, task.error, task.cause)
            self._write(events.ScenarioError(test=task.test.id, error=task.error))

    async def _end(self, state: TestState) -> None:
        """End a test whose outline has all been said or filled."""
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
        await self._pass_turn(_Utterance("filler", text, size, reply, ready=None if asked else Ready(reply, distraction.reply_tokens)))

    async def _pass_turn(self, utterance: _Utterance) -> None:
        """Play a turn that belongs to no test."""
        await self._exchange(utterance)
        self._conductor.passes(utterance.charge)

    # Turns.

    async def _exchange(self, utterance: _Utterance) -> Turn:
        """Play one turn: journal the message, get the agent's reply or pass on the ready one, and journal the reply."""
        if self._before_turn is not None:
            await self._before_turn()
        if self._save_due or self.turns - self._saved >= max(SNAPSHOT_EVERY, SNAPSHOT_SHARE * self.turns):
            await self._snapshot()
        if self._stopping:
            await self._save_progress()
            raise StoppedError(f"stopped after turn {self.turns - 1}")
        ready, number, start = utterance.ready, self.turns, self._positions.said
        name = self._name
        if self._fork is not None and number < self._fork.point.turn:
            name = name_turns(self._fork.point.conversation)
        message = Message(utterance.text, self.now, f"{name}-{number}")
        sent = events.Message(
            turn=number,
            turn_id=message.turn_id,
            kind=utterance.kind,
            test=utterance.test,
            needle=utterance.needle,
            text=utterance.text,
            tokens=utterance.tokens,
            start=start,
            dealt=self._positions.dealt,
            sent_at=message.sent_at,
            needs=utterance.needs and self._replacements.keep_needles(utterance.needs),
        )
        again = self._journal.replaying
        self._write(sent)
        event, size = None, ""
        try:
            ideal = utterance.ideal if ready else await self._amend_ideal(utterance.ideal)
            event = await self._respondent.reply(PendingMessage(message, sent, ideal, ready, again))
            self._write(event)
        except StoppedError:  # a spending limit is reached
            await self._save_progress()
            raise
        except MemoryError:
            size = f" of {len(event.text):,} characters" if event is not None else ""
            event = None
        if event is None:  # raised here, the error does not keep the reply, so there is room to grade what was played
            raise AgentError(
                f"turn {number}: out of memory: no room for the agent's reply{size}; limit the length of replies, or give "
                "longspan more memory, and resume the run"
            )
        turn = Turn(number, utterance.test, utterance.text, readable_part(event.text), message.sent_at, start, event.end, ready is None)
        self._positions.add(turn, utterance.charge)
        self._clock.tick()
        await self._show(turn)
        return turn

    async def _pass_night(self) -> None:
        """Let the agent consolidate its memory until the next morning, and journal the night. The agent is then due for a snapshot."""
        morning = morning_after(self.now)
        self._clock.jump(morning)
        night = await self._respondent.night(self.turns, morning)
        self._write(night)
        self._save_due |= night.consolidated

    async def _settle(self) -> None:
        """Let the agent finish adding the turns so far, and journal the cost."""
        settled = await self._respondent.settle(self.turns)
        if settled is not None:
            self._write(settled)

    async def _snapshot(self) -> None:
        """Save the agent and journal the snapshot."""
        self._save_due, self._saved = False, self.turns
        if await self._respondent.save():
            self._write(events.Snapshot(turn=self.turns))

    async def _save_progress(self) -> None:
        """Save the progress before stopping, so that resuming pays for nothing twice."""
        await self._agent.save_progress()
        self._journal.sync()

    # Watching.

    def _watchers(self) -> list[tuple[TestTask, Watch]]:
        """Return the watching tests with their requests, in the order they were created."""
        tasks = [self._tasks[state.test.id] for state in self._conductor.open]
        return [(task, task.request) for task in tasks if isinstance(task.request, Watch)]

    async def _amend_ideal(self, ideal: str) -> str:
        """Return the current turn's ideal reply, as amended by watching tests."""
        for task, watch in self._watchers():
            if watch.amend is not None and watch.turn == self.turns:
                try:
                    ideal = watch.amend(watch.count, ideal)
                except BaseException as error:
                    if not is_fault(error):
                        raise
                    task.fails(error)
                    await task.cancel_and_wait()
                    self._write_events(task)
        return ideal

    async def _show(self, turn: Turn) -> None:
        """Pass a turn to the tests that watch it. Their next messages and waits have to wait until they get the floor."""
        for task, watch in self._watchers():
            if watch.turn != turn.number:
                continue
            await task.show(turn)
            while isinstance(request := task.request, AskJudge):
                await task.resume(await self._verdict(task.test, request))
            self._write_events(task)
