"""One conversation: the conductor decides, the tests speak, the agent replies, the journal keeps it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar, final

import trio

from longspan.simulator import events
from longspan.simulator.agent import Agent, has_snapshots, repeatable
from longspan.simulator.clock import VirtualClock
from longspan.simulator.conductor import Conductor, Fill, Part, Release, Speak
from longspan.simulator.errors import AgentError, JournalError, LongspanError, ReplayError, StoppedError
from longspan.simulator.filler.filler import Distraction, Filler
from longspan.simulator.journal import Journal
from longspan.simulator.ledger import Ledger, models_of, used_by
from longspan.simulator.messages import Message, Reply, Turn, Usage
from longspan.simulator.scenario import Test
from longspan.simulator.script import Line, Placement, Segment
from longspan.simulator.snapshots import Snapshots
from longspan.simulator.stage import AskJudge, Judge, Say, Verdict, Wait, Watch
from longspan.simulator.test_task import Player, told
from longspan.simulator.tokens import Tokenizer

__all__ = ["PACE", "STARTS_AT", "Conversation", "Setting", "definition", "left_out"]

Answer = TypeVar("Answer")

DISK: Final = trio.CapacityLimiter(4)
"""Threads that sync and save: their own, so that agents that block threads do not keep them waiting."""

STARTS_AT: Final = datetime(2024, 1, 1, 9, 0)
"""The virtual date and time at which a conversation starts, unless its manifest says otherwise."""

PACE: Final = timedelta(seconds=30)
"""The virtual time that a turn takes."""

OPENING: Final = (
    "Over the course of this conversation I will bring up many unrelated things: facts about me, small tasks, stories, "
    "questions. Topics will come and go and return much later. Keep in mind what I tell you. Answer questions and follow "
    "instructions with just what they ask for and nothing more; to anything else, a brief acknowledgement will do. "
    "Is that clear?"
)
"""The first message: it explains the situation (GoodAI, section 3.1)."""

SNAPSHOT_EVERY: Final = 100
"""Turns after which the agent is saved, where no test has ended before."""

REPLIES_BEFORE: Final = 45
"""Tokens a reply is expected to have before there are any, for telling which tests fit at all."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a conversation is played with. `span` in tokens; `pace` is the virtual time a turn takes. `alone`: it is that of a
    test that has one to itself, and begins with the test's first line."""

    id: str
    span: int
    placement: Placement = "uniform"
    isolated: bool = False
    alone: bool = False
    tokenizer: Tokenizer
    filler: Filler
    starts_at: datetime = STARTS_AT
    pace: timedelta = PACE


def left_out(test: Test, setting: Setting) -> str | None:
    """Why a test cannot keep its span even alone; None where it can."""
    outline = test.script.segments(setting.tokenizer.count, setting.placement)
    if test.script.alone:
        return None
    need = sum(segment.tokens + segment.replies * REPLIES_BEFORE for segment in outline) - REPLIES_BEFORE
    if setting.isolated or need <= setting.span:
        return None
    return f"{test.id} is left out: its script needs about {need:,} tokens, the span is {setting.span:,}"


def definition(test: Test) -> dict[str, Any]:
    """All that a test is, as JSON: what its `open` event holds, and what a run's commitment covers."""
    script = test.script
    content = {
        "test": test.id,
        "scenario": test.scenario.name,
        "parameters": test.scenario.model_dump(mode="json"),
        "facts": dict(script.facts),
        "lines": [_plain(line) for line in script.lines],
        "outline": [_plain(segment) for segment in script.outline],
        "farewell": script.farewell,
        "alone": script.alone,
    }
    made: dict[str, Any] = json.loads(json.dumps(content))  # as it will be read back: tuples are lists
    return made


def _plain(part: Line | Segment) -> dict[str, Any]:
    return {field.name: getattr(part, field.name) for field in fields(part)} | {"pause": part.pause.total_seconds()}


@final
class Conversation:
    """Plays `tests` with `agent` and keeps `journal`.

    `whisper` receives each ideal reply just before the agent is asked; only `oracle` is given one. `listener` is told
    of every event once it is in the journal.

    A journal that already holds events is played again from the beginning: its replies are taken instead of the agent's.
    Where it ends, the agent is restored from its newest snapshot, shown the turns after that, and asked for what comes.
    """

    def __init__(
        self,
        setting: Setting,
        tests: Sequence[Test],
        agent: Agent,
        journal: Journal,
        *,
        snapshots: Snapshots | None = None,
        judge: Judge | None = None,
        ledger: Ledger | None = None,
        whisper: Callable[[str], None] | None = None,
        listener: Callable[[events.Event], object] | None = None,
    ) -> None:
        self._setting = setting
        # A conversation may be called by the test it holds, which is nothing for the agent to know.
        self._name = hashlib.sha256(setting.id.encode()).hexdigest()[:8]
        self._agent = agent
        self._journal = journal
        self._snapshots = snapshots
        self._judge = judge
        self._ledger = ledger or Ledger()
        self._whisper = whisper
        self._listener = listener
        self._clock = VirtualClock(setting.starts_at, setting.pace)
        self._count = setting.tokenizer.count
        self._position = 0
        self._history: list[Turn] = []
        self._saved = 0
        self._ended = False
        self._live = False
        self._stopping = False
        self._players = {test.id: Player(Part(test, test.script.segments(self._count, setting.placement)), self) for test in tests}
        paced = not (setting.isolated or setting.alone)
        self._conductor = Conductor((player.part for player in self._players.values()), setting.span, paced=paced)

    @property
    def now(self) -> datetime:
        return self._clock.now

    @property
    def turns(self) -> int:
        return len(self._history)

    def stop(self) -> None:
        """Have `play` save the agent and raise StoppedError before the next turn."""
        self._stopping = True

    async def play(self) -> None:
        """Play to the end.

        Raises AgentError when the agent fails for good, JournalError when the journal cannot be written, ReplayError
        when it is not that of this conversation, StoppedError after `stop`. Cancelled, or ended by an error, it leaves a
        journal from which it can be resumed.
        """
        failure: BaseException | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_synced)
            try:
                await self._converse(nursery)
            except Exception as error:  # raised bare, not as a group, once all tests have left
                failure = error
            finally:
                for player in self._players.values():
                    player.dismiss()
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
            await self._exchange(OPENING, kind="opening", ideal="Understood.")
        while step := self._conductor.next(self._position, self.turns, self.now):
            match step:
                case Speak(part, jump):
                    await self._floor(self._players[part.test.id], jump, nursery)
                case Fill(tokens, asked):
                    await self._fill(tokens, asked)
                case Release(part):
                    await self._go_on(self._players[part.test.id], None)
        self._write(events.Close(turns=self.turns, tokens=self._position))
        if self._journal.replaying:
            raise ReplayError(f"{self._journal.path}, line {self._journal.seq + 1}: there is an event after the conversation's close")
        self._journal.sync()

    async def _keep_synced(self) -> None:
        while True:
            await trio.sleep(1)
            with suppress(JournalError):  # the journal is broken from then on: the next write ends the conversation
                await trio.to_thread.run_sync(self._journal.sync, limiter=DISK)

    # The agent's memory, kept over crashes.

    async def _snapshot(self) -> None:
        """Save the agent, at each test's end and every hundred turns. Played again, the journal says where it was."""
        self._ended, self._saved = False, self.turns
        recorded = self._journal.recorded()
        if recorded is None and self._snapshots is not None:
            await self._go_live()  # first: what an agent in another process can do is not known before
            if has_snapshots(self._agent):
                await self._call(self._snapshots.save(self._agent, self.turns))
                self._write(events.Snapshot(turn=self.turns))
        elif isinstance(recorded, events.Snapshot):
            self._write(events.Snapshot(turn=self.turns))

    async def _go_live(self) -> None:
        """Bring the agent to where the journal ended, before it is first asked or saved."""
        if self._live:
            return
        self._live = True
        known = 0
        if self._snapshots is not None:
            known = await self._call(self._snapshots.restore(self._agent, self.turns))
        for turn in self._history[known:]:
            await self._call(self._agent.observe(Message(turn.text, turn.sent_at, self._turn_id(turn.number)), turn.reply))

    async def _call(self, call: Awaitable[Answer]) -> Answer:
        """Call the agent. Whatever it raises is an error of the agent's, told with its turn."""
        try:
            return await call
        except LongspanError:
            raise
        except Exception as error:
            raise AgentError(f"turn {self.turns}: the agent failed: {told(error)}") from error

    def _turn_id(self, number: int) -> str:
        return f"{self._name}-{number}"

    async def _leave(self) -> None:
        """Save the agent between two turns, outside the journal, and end."""
        if self._live and self._snapshots is not None and has_snapshots(self._agent):
            await self._call(self._snapshots.save(self._agent, self.turns))
        self._journal.sync()
        raise StoppedError(f"stopped after turn {self.turns - 1}")

    # The floor.

    async def _floor(self, player: Player, jump: datetime | None, nursery: trio.Nursery) -> None:
        """Let a test speak until it waits, watches or ends."""
        part = player.part
        if jump is not None:
            self._clock.jump(jump)
            self._write(events.Jump(test=part.test.id, to=jump))
        self._conductor.speaks(part, self._position)
        if part.leaving:
            await self._farewell(part)
        elif not player.started:
            self._open(part)
            player.started = True
            nursery.start_soon(player.host)
            await player.returned.acquire()
            await self._answer(player)
        elif part.speaking:
            await self._answer(player)
        else:
            await self._go_on(player, None)

    async def _go_on(self, player: Player, answer: Any) -> None:
        """Give a parked test what it waits for, and serve it until it waits again."""
        await player.resume(answer)
        await self._answer(player)

    async def _answer(self, player: Player) -> None:
        """Serve the requests of the test that has the floor, until it gives the floor up."""
        part = player.part
        part.speaking = part.watching = False
        while True:
            self._note_awards(player)
            match player.request:
                case Say() as say:
                    await player.resume(await self._say(player, say))
                case AskJudge() as question:
                    await player.resume(await self._verdict(part.test, question))
                case Wait() as wait:
                    return self._wait(player, wait)
                case Watch() as watch if watch.turn < self.turns:
                    await player.resume(self._watched(player, self._history[watch.turn]))
                case Watch() as watch:
                    part.watching, part.until = True, watch.until
                    return None
                case None:
                    return self._end(player)

    def _open(self, part: Part) -> None:
        test = part.test
        self._write(
            events.Open(
                **definition(test),
                skills=list(test.scenario.skills),
                chance=test.scenario.chance(test.script.facts),
                uninterrupted=test.scenario.uninterrupted,
                position=self._position,
            )
        )

    async def _say(self, player: Player, say: Say) -> str:
        if not player.spoken:
            player.part.start = self._position
        needs = None
        if say.asks:
            needs = player.needles if say.needs is None else [player.needles[number] for number in say.needs]
        kind: events.MessageKind = "question" if say.asks else "line"
        turn = await self._exchange(say.text, kind=kind, test=player.part.test.id, needle=say.needle, ideal=say.ideal, needs=needs)
        player.spoken = True
        if say.needle:
            player.needles.append(turn.number)
        return turn.reply

    def _wait(self, player: Player, wait: Wait) -> None:
        due = self._position + (wait.tokens or 0)
        if wait.span is not None:
            start = player.part.start if player.spoken else self._position
            due = max(due, start + -int(-wait.span * self._setting.span // 1))
        time = self.now + wait.time if wait.time is not None else datetime.min
        self._conductor.waits(player.part, tokens=due, turn=self.turns + (wait.turns or 0), time=time)

    async def _verdict(self, test: Test, question: AskJudge) -> Verdict:
        recorded = self._journal.recorded()
        if isinstance(recorded, events.Verdict):
            verdict = Verdict(recorded.holds, recorded.why, recorded.by, bool(recorded.failed))
        elif self._judge is None:
            verdict = Verdict(None, "no judge")
        else:
            verdict = await self._judge.judge(question.statement, question.text)
        self._write(
            events.Verdict(
                test=test.id,
                statement=question.statement,
                holds=verdict.holds,
                why=verdict.why,
                by=verdict.by,
                failed=verdict.failed or None,
            )
        )
        return verdict

    def _end(self, player: Player) -> None:
        part = player.part
        more = self._conductor.ends(part)
        if player.error is not None:
            self._write(events.ScenarioError(test=part.test.id, error=player.error))
        else:
            stopped = part.segment < len(part.outline) - 1
            self._write(events.End(test=part.test.id, watched=player.watched, stopped=stopped))
        self._ended = True
        if more and part.test.script.farewell is not None:
            part.leaving = True
            self._conductor.open.append(part)

    async def _farewell(self, part: Part) -> None:
        self._conductor.open.remove(part)
        await self._exchange(part.test.script.farewell or "", kind="farewell", test=part.test.id)

    # Filler.

    async def _fill(self, tokens: int, asked: bool) -> None:
        if asked:
            distraction = self._setting.filler.ask(tokens)
            await self._exchange(distraction.text, kind="filler", ideal=distraction.reply, tokens=distraction.text_tokens)
        else:
            distraction = self._setting.filler.make(tokens)
            await self._exchange(distraction.text, kind="filler", tokens=distraction.text_tokens, ready=distraction)

    # Turns.

    async def _exchange(
        self,
        text: str,
        *,
        kind: events.MessageKind,
        test: str | None = None,
        needle: bool = False,
        ideal: str = "OK.",
        tokens: int | None = None,
        needs: list[int] | None = None,
        ready: Distraction | None = None,
    ) -> Turn:
        """One turn: the message is journaled, the agent asked (or told, where the reply is ready), the reply journaled."""
        if self._ended or self.turns - self._saved >= SNAPSHOT_EVERY:
            await self._snapshot()
        if self._stopping:
            await self._leave()
        number = self.turns
        start = self._position
        message = Message(text, self.now, self._turn_id(number))
        again = self._journal.replaying
        tokens = self._count(text) if tokens is None else tokens
        self._write(
            events.Message(
                turn=number,
                turn_id=message.turn_id,
                kind=kind,
                test=test,
                needle=needle,
                text=text,
                tokens=tokens,
                start=start,
                sent_at=message.sent_at,
                needs=needs,
            )
        )
        event = await self._reply(message, number, start + tokens, ideal, ready, again)
        self._write(event)
        self._position = event.end
        turn = Turn(number, test, text, event.text, message.sent_at, start, event.end, event.asked)
        self._history.append(turn)
        self._clock.tick()
        if event.asked:
            self._conductor.heard(event.tokens, question=kind == "question")
        await self._show(turn)
        return turn

    async def _reply(self, message: Message, number: int, end: int, ideal: str, ready: Distraction | None, again: bool) -> events.Reply:
        if ready is None:
            ideal = await self._amended(number, ideal)
        recorded = self._journal.recorded()
        if isinstance(recorded, events.Reply):
            # All of it that follows from the text is worked out again, so that writing compares it.
            text = recorded.text if ready is None else ready.reply
            tokens = self._count(text) if ready is None else ready.reply_tokens
            return recorded.model_copy(update={"turn": number, "text": text, "tokens": tokens, "end": end + tokens, "asked": ready is None})
        await self._go_live()
        began = time.monotonic()
        if ready is not None:
            await self._call(self._agent.observe(message, ready.reply))
            reply, tokens, costs = Reply(ready.reply), ready.reply_tokens, None
        else:
            if self._whisper is not None:
                self._whisper(ideal)
            async with self._ledger.paying(models_of(self._agent), self._ledger.worst(self._agent, message)) as account:
                reply = _reply_of(await self._call(self._agent.reply(message)))
                costs = account.settle(used_by(reply))
            tokens = self._count(reply.text)
        try:
            event = events.Reply(
                turn=number,
                text=reply.text,
                tokens=tokens,
                end=end + tokens,
                asked=ready is None,
                repeated=True if again and not repeatable(self._agent) else None,
                usage=asdict(reply.usage) if reply.usage else None,
                besides={part: asdict(usage) for part, usage in reply.besides.items()} or None,
                cost_usd=costs,
                trace=reply.trace,
                measured={"latency_s": round(time.monotonic() - began, 6)},
            )
            if reply.trace is not None or reply.besides:  # all else is text without surrogates, and numbers
                event = events.Reply.model_validate_json(events.as_json(event))  # as it will be read back: tuples are lists
        except Exception as error:
            raise AgentError(f"turn {number}: the agent's reply has usage or a trace that cannot be journaled: {told(error)}") from error
        return event

    # Watching.

    def _watchers(self) -> list[tuple[Player, Watch]]:
        """The tests that watch, in the order in which they were made."""
        players = [self._players[part.test.id] for part in self._conductor.open if part.watching]
        return [(player, player.request) for player in players if isinstance(player.request, Watch)]

    async def _amended(self, number: int, ideal: str) -> str:
        """The ideal reply of the turn as the tests that watch it want it."""
        for player, watch in self._watchers():
            if watch.amend is not None and watch.turn == number:
                try:
                    ideal = watch.amend(watch.count, ideal)
                except Exception as error:
                    player.error = told(error)
                    await player.leave()
                    self._end(player)
        return ideal

    async def _show(self, turn: Turn) -> None:
        """Show a turn to the tests that watch. One that wants to speak then waits for the floor."""
        for player, watch in self._watchers():
            if watch.turn != turn.number:
                continue
            await player.resume(self._watched(player, turn))
            self._note_awards(player)
            match player.request:
                case Say() | AskJudge():
                    player.part.speaking, player.part.watching = True, False
                case Watch() as again:
                    player.part.until = again.until
                case _:
                    await self._answer(player)

    @staticmethod
    def _watched(player: Player, turn: Turn) -> Turn:
        player.watched.append(turn.number)
        return turn

    def _note_awards(self, player: Player) -> None:
        """Journal the points that a test gave itself. Not the test does it: a full disk is not its fault."""
        for award in player.awards:
            self._write(award)
        player.awards.clear()

    @property
    def placement(self) -> Placement:
        return self._setting.placement

    def _write(self, event: events.Event) -> None:
        self._journal.write(event)
        if self._listener is not None:
            self._listener(event)


def _reply_of(given: object) -> Reply:
    """A reply as it can be journaled: text without lone surrogates. Raises AgentError for what is no reply."""
    if not isinstance(given, Reply) or not isinstance(given.text, str):
        what = type(given.text).__name__ if isinstance(given, Reply) else type(given).__name__
        raise AgentError(f"the agent replied with {what} instead of text in a Reply")
    used = used_by(given) if isinstance(given.besides, Mapping) else {"besides": None}
    for part, usage in used.items():
        if not isinstance(usage, Usage) or not all(isinstance(each, int) and each >= 0 for each in astuple(usage)):
            raise AgentError(f"the agent's reply says that it used {usage!r:.80} ({part}); a Usage of counts of tokens is wanted")
    return given if given.text.isascii() else replace(given, text=given.text.encode("utf-8", "replace").decode())
