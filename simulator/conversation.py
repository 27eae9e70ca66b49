"""One conversation: the conductor decides who speaks, tests speak, the agent replies, and the journal records it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Final, final

import trio

from longspan.simulator import events
from longspan.simulator.clock import DEFAULT_PACE, DEFAULT_START, VirtualClock
from longspan.simulator.conductor import Conductor, Fill, Release, Speak, TestState
from longspan.simulator.errors import AgentError, JournalError, ReplayError, StoppedError, journal_text
from longspan.simulator.faults import is_fault
from longspan.simulator.filler.filler import Distraction, Filler
from longspan.simulator.journal import Journal
from longspan.simulator.live_agent import LiveAgent
from longspan.simulator.messages import Message, Reply, Turn
from longspan.simulator.record import readable
from longspan.simulator.scenario import Test
from longspan.simulator.script import Placement
from longspan.simulator.stage import AskJudge, Judge, Say, Verdict, Wait, Watch
from longspan.simulator.test_task import TestTask
from longspan.simulator.tokens import Tokenizer

__all__ = ["Conversation", "Setting"]

DISK: Final = trio.CapacityLimiter(4)
"""The limit of threads that sync journals. It is separate, so that agents that block threads do not delay them."""

OPENING: Final = (
    "Over the course of this conversation I will bring up many unrelated things: facts about me, small tasks, stories, "
    "questions. Topics will come and go and return much later. Keep in mind what I tell you. Answer questions and follow "
    "instructions with just what they ask for and nothing more; to anything else, a brief acknowledgement will do. "
    "Is that clear?"
)
"""The first message, which explains the situation (GoodAI, section 3.1)."""

CHARGE: Final = 20
"""Tokens charged for a reply of the agent, whatever its length (the medians of published logs are from 3 to 133)."""

SNAPSHOT_EVERY: Final = 100
"""Turns after which the agent is saved if no test has ended."""

EXPECTED_REPLY: Final = 45
"""The assumed length of a reply in tokens, for deciding beforehand which tests fit in the span."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The settings of one conversation.

    `span` is in tokens; `pace` is the virtual time that a turn takes. `isolated`: each test of the run has a conversation to
    itself. `alone`: its test has one in any run, and the conversation begins with the test's first line.
    """

    id: str
    span: int
    placement: Placement = "uniform"
    isolated: bool = False
    alone: bool = False
    tokenizer: Tokenizer
    filler: Filler
    starts_at: datetime = DEFAULT_START
    pace: timedelta = DEFAULT_PACE

    def left_out(self, test: Test) -> str | None:
        """Return why a test cannot keep its span even on its own, or None if it can."""
        outline = test.script.segments(self.tokenizer.count, self.placement)
        if test.script.alone or self.isolated:
            return None
        tokens = sum(segment.tokens + segment.replies * EXPECTED_REPLY for segment in outline) - EXPECTED_REPLY
        if tokens <= self.span:
            return None
        return f"{test.id} is left out: its script needs about {tokens:,} tokens, but the span is {self.span:,}"


@final
@dataclass(frozen=True, slots=True)
class _Utterance:
    """The user's next message, of `tokens` tokens.

    `ideal` is the reply of a perfect agent. `ready` is filler whose reply is put in the agent's history without asking it.
    """

    kind: events.MessageKind
    text: str
    tokens: int
    ideal: str = "OK."
    test: str | None = None
    needle: bool = False
    needs: list[int] | None = None
    ready: Distraction | None = None


@final
class Conversation:
    """Plays `tests` with `agent` and writes `journal`. `listener` is called with every event once it is in the journal.
    `before_turn` is awaited before each turn.

    A journal that already has events is replayed from the beginning, with its replies instead of the agent's. At its end, the
    agent catches up and is asked from then on. `on_fault` is called with a test's id, its error as journaled, and the exception,
    before an error of its own ends a test that is not replayed.
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
    ) -> None:
        self._setting = setting
        # The id may be a test's name, which the agent must not see in turn ids.
        self._name = hashlib.sha256(setting.id.encode()).hexdigest()[:8]
        self._agent = agent
        self._journal = journal
        self._judge = judge
        self._listener = listener
        self._before_turn = before_turn
        self._on_fault = on_fault
        self._clock = VirtualClock(setting.starts_at, setting.pace)
        self._count = setting.tokenizer.count
        self._position = self._dealt = 0
        self._history: list[Turn] = []
        self._saved = 0
        self._test_ended = False
        self._stopping = False
        states = [TestState(test, test.script.segments(self._count, setting.placement)) for test in tests]
        self._tasks = {state.test.id: TestTask(state, self) for state in states}
        self._conductor = Conductor(states, setting.span, paced=not (setting.isolated or setting.alone))

    @property
    def now(self) -> datetime:
        return self._clock.now

    @property
    def turns(self) -> int:
        return len(self._history)

    @property
    def placement(self) -> Placement:
        return self._setting.placement

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
                conversation=setting.id,
                span=setting.span,
                placement=setting.placement,
                isolated=setting.isolated,
                tokenizer=setting.tokenizer.name,
                starts_at=setting.starts_at,
                pace_s=setting.pace.total_seconds(),
            )
        )
        if not setting.alone:
            await self._exchange(_Utterance("opening", OPENING, self._count(OPENING), ideal="Understood."))
        while step := self._conductor.next(self._position, self.turns, self.now):
            match step:
                case Speak(state, jump):
                    await self._give_floor(self._tasks[state.test.id], jump, nursery)
                case Fill(tokens, asked):
                    await self._fill(tokens, asked)
                case Release(state):
                    await self._resume(self._tasks[state.test.id])
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

    async def _give_floor(self, task: TestTask, jump: datetime | None, nursery: trio.Nursery) -> None:
        """Let a test speak until it waits, watches or ends."""
        state = task.state
        if jump is not None:
            self._clock.jump(jump)
            self._write(events.Jump(test=state.test.id, to=jump))
        self._conductor.speaks(state, self._position)
        if state.leaving:
            await self._farewell(state)
        elif not task.started:
            self._open(state.test)
            await task.start(nursery)
            await self._serve(task)
        elif state.speaking:
            await self._serve(task)
        else:
            await self._resume(task)

    async def _resume(self, task: TestTask) -> None:
        """End a test's wait or watch, and serve it."""
        await task.resume(None)
        await self._serve(task)

    async def _serve(self, task: TestTask) -> None:
        """Serve a test's requests until it gives up the floor."""
        state = task.state
        state.speaking = state.watching = False
        while True:
            self._write_awards(task)
            match task.request:
                case Say() as say:
                    await task.resume(await self._say(task, say))
                case AskJudge() as request:
                    await task.resume(await self._verdict(state.test, request))
                case Wait() as wait:
                    return self._wait(task, wait)
                case Watch() as watch if watch.turn < self.turns:
                    await task.show(self._history[watch.turn])
                case Watch() as watch:
                    state.watching, state.until = True, watch.until
                    return None
                case None:
                    return self._end(task)

    def _open(self, test: Test) -> None:
        self._write(
            events.Open(
                **test.definition(),
                skills=list(test.scenario.skills),
                chance=test.scenario.chance(test.script.facts),
                uninterrupted=test.scenario.uninterrupted,
                position=self._position,
            )
        )

    async def _say(self, task: TestTask, say: Say) -> str:
        if not task.spoken:
            task.state.start = self._position
        needs = None
        if say.asks:
            needs = task.needles if say.needs is None else [task.needles[number] for number in say.needs]
        kind: events.MessageKind = "question" if say.asks else "line"
        tokens = self._count(say.text)
        utterance = _Utterance(kind, say.text, tokens, say.ideal, test=task.state.test.id, needle=say.needle, needs=needs)
        turn = await self._exchange(utterance)
        task.spoken = True
        if say.needle:
            task.needles.append(turn.number)
        return turn.reply

    def _wait(self, task: TestTask, wait: Wait) -> None:
        due = self._position + (wait.tokens or 0)
        if wait.span is not None:
            start = task.state.start if task.spoken else self._position
            due = max(due, start + -int(-wait.span * self._setting.span // 1))
        time = self.now + wait.time if wait.time is not None else datetime.min
        self._conductor.waits(task.state, tokens=due, turn=self.turns + (wait.turns or 0), time=time)

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

    def _write_awards(self, task: TestTask) -> None:
        """Journal a test's awards. The test does not do so itself, because a full disk must not count as its error."""
        for award in task.awards:
            self._write(award)
        task.awards.clear()

    def _end(self, task: TestTask) -> None:
        state = task.state
        more = self._conductor.ends(state)
        if task.error is not None:
            if task.cause is not None and self._on_fault is not None and not self._journal.replaying:
                self._on_fault(state.test.id, task.error, task.cause)
            self._write(events.ScenarioError(test=state.test.id, error=task.error))
        else:
            stopped = state.segment < len(state.outline) - 1
            self._write(events.End(test=state.test.id, watched=task.watched, stopped=stopped))
        self._test_ended = True
        if more and state.test.script.farewell is not None:
            state.leaving = True
            self._conductor.open.append(state)

    async def _farewell(self, state: TestState) -> None:
        self._conductor.open.remove(state)
        text = state.test.script.farewell or ""
        await self._exchange(_Utterance("farewell", text, self._count(text), test=state.test.id))

    async def _fill(self, tokens: int, asked: bool) -> None:
        filler = self._setting.filler
        distraction = filler.ask(tokens) if asked else filler.make(tokens)
        text, size, reply = distraction.text, distraction.text_tokens, distraction.reply
        await self._exchange(_Utterance("filler", text, size, reply, ready=None if asked else distraction))

    # Turns.

    async def _exchange(self, utterance: _Utterance) -> Turn:
        """Play one turn: journal the message, ask the agent (or show it the ready reply), and journal the reply."""
        if self._before_turn is not None:
            await self._before_turn()
        if self._test_ended or self.turns - self._saved >= SNAPSHOT_EVERY:
            await self._snapshot()
        if self._stopping:
            await self._agent.save_progress()
            self._journal.sync()
            raise StoppedError(f"stopped after turn {self.turns - 1}")
        number, start = self.turns, self._position
        message = Message(utterance.text, self.now, f"{self._name}-{number}")
        sent_before = self._journal.replaying
        self._write(
            events.Message(
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
                needs=utterance.needs,
            )
        )
        event = await self._reply(message, utterance, sent_before)
        self._write(event)
        self._position = event.end
        self._dealt += utterance.tokens + (CHARGE if event.asked else event.tokens)
        turn = Turn(number, utterance.test, utterance.text, readable(event.text), message.sent_at, start, event.end, event.asked)
        self._history.append(turn)
        self._clock.tick()
        if event.asked:
            self._conductor.replied(event.tokens, question=utterance.kind == "question")
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
            text, tokens = (ready.reply, ready.reply_tokens) if ready else (recorded.text, self._count(recorded.text))
            self._agent.replay(message, text)
            return recorded.model_copy(
                update={"turn": self.turns, "text": text, "tokens": tokens, "end": end + tokens, "asked": ready is None}
            )
        await self._agent.catch_up()
        began = time.monotonic()
        if ready:
            await self._agent.observe(message, ready.reply)
            reply, tokens, costs = Reply(ready.reply), ready.reply_tokens, None
        else:
            reply, costs = await self._agent.reply(message, ideal)
            tokens = self._count(reply.text)
        try:
            event = events.Reply(
                turn=self.turns,
                text=reply.text,
                tokens=tokens,
                end=end + tokens,
                asked=ready is None,
                repeated=True if sent_before and not self._agent.repeatable else None,
                usage=asdict(reply.usage) if reply.usage else None,
                besides={part: asdict(usage) for part, usage in reply.besides.items()} or None,
                cost_usd=costs,
                trace=reply.trace,
                measured={"latency_s": round(time.monotonic() - began, 6)},
            )
            if reply.trace is not None or reply.besides:  # the rest is text without surrogates, and numbers
                read_back = events.Reply.model_validate_json(events.as_json(event))  # tuples become lists
                event = read_back.model_copy(update={"measured": event.measured})
        except Exception as error:
            problem = "the agent's reply has usage or a trace that cannot be journaled"
            raise AgentError(f"turn {self.turns}: {problem}: {journal_text(error)}") from error
        return event

    async def _snapshot(self) -> None:
        """Save the agent and journal the snapshot. In a replay, only follow the journal."""
        self._test_ended, self._saved = False, self.turns
        recorded = self._journal.recorded()
        if isinstance(recorded, events.Snapshot) or (recorded is None and await self._agent.save()):
            self._write(events.Snapshot(turn=self.turns))

    # Watching.

    def _watchers(self) -> list[tuple[TestTask, Watch]]:
        """Return the watching tests with their requests, in the order in which they were created."""
        tasks = [self._tasks[state.test.id] for state in self._conductor.open if state.watching]
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
                    self._end(task)
        return ideal

    async def _show(self, turn: Turn) -> None:
        """Show a turn to the watching tests. A test that then speaks waits for the floor."""
        for task, watch in self._watchers():
            if watch.turn != turn.number:
                continue
            await task.show(turn)
            self._write_awards(task)
            match task.request:
                case Say() | AskJudge():
                    task.state.speaking, task.state.watching = True, False
                case Watch() as next_watch:
                    task.state.until = next_watch.until
                case _:
                    await self._serve(task)
