"""Plays the conversations of runs, with their branches and experiments, within limits that all runs share."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from traceback import format_exception
from typing import Final, NamedTuple, final

import trio

from longspan.simulator.base.errors import AgentError, InputError, LongspanError, StoppedError
from longspan.simulator.base.keys import redact
from longspan.simulator.base.terminal import complain, quote_command
from longspan.simulator.contract.agent import Agent, IdealReplyAgent, close_agent
from longspan.simulator.contract.findings import Examination
from longspan.simulator.journal import events
from longspan.simulator.journal.answer_store import AnswerStore
from longspan.simulator.journal.journal import Journal, is_closed
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.journal.transcript import Change, PlayedTest
from longspan.simulator.journal.turns_shown import past_turns
from longspan.simulator.play.conversation import Conversation
from longspan.simulator.play.live_agent import LiveAgent
from longspan.simulator.play.positions import Trunk
from longspan.simulator.play.trunk_agent import TrunkAgent
from longspan.simulator.results.gradebook.gradebook import Gradebook
from longspan.simulator.results.gradebook.worker import GradingWorker
from longspan.simulator.results.judging.background import BackgroundJudge
from longspan.simulator.results.judging.cached_model import CachedModel
from longspan.simulator.results.result import Result
from longspan.simulator.running.forked import fork_in, snapshots_in
from longspan.simulator.running.planning import Plan, check_branches, setting_of
from longspan.simulator.running.scoring import RunScorer
from longspan.simulator.subject.agent_log import AgentLog
from longspan.simulator.subject.ledger import Ledger, models_of
from longspan.simulator.subject.prompt_log import PromptLog
from longspan.simulator.subject.purse import Purse
from longspan.simulator.subject.snapshots import Snapshots
from longspan.simulator.subject.spending_record import SpendingRecord
from longspan.simulator.subject.telemetry import SILENT, TELEMETRY, ConversationName, Spans
from longspan.simulator.suite.agent_spec import AgentSpec, at_once, find_examination, make_agent

__all__ = ["Listener", "Outcome", "Player", "RunEvent"]

MAX_FAILURES: Final = 2
"""After this many failed branches in a row, a trunk's other branches are left for `longspan resume`."""

GRACE_PERIOD: Final = 10.0
"""The seconds that the current turn may take to finish when a run is stopped."""


@final
class RunEvent(NamedTuple):
    """An event of a run being played.

    `folder` is the run's folder, `gradebook` its grades so far, `conversation` an id, `change` the change that the event made.
    """

    plan: Plan
    folder: Path
    gradebook: Gradebook
    conversation: str
    event: events.Event
    change: Change


Listener = Callable[[RunEvent], None]
"""A function that is called with every event."""


@final
@dataclass(frozen=True, slots=True)
class Outcome:
    """A played run: its folder, its results (None if they cannot be written), and the error that interrupted it.

    `kept` is False if its agent failed before the first reply. Then the folder has been deleted.
    """

    folder: Path
    result: Result | None
    error: LongspanError | None
    kept: bool = True


@final
class Player:
    """Plays runs that share a limit on conversations, a ledger and a listener, and can stop them."""

    def __init__(self, limit: trio.CapacityLimiter, listener: Listener | None, ledger: Ledger) -> None:
        self._limit = limit
        self._agent_limits: dict[str, trio.CapacityLimiter] = {}
        self._admitted: set[str] = set()
        self._door = trio.Lock()
        self._ledger = ledger
        self._listener = listener
        self._stopped = self._at_once = False
        self._workers: set[GradingWorker] = set()
        self._conversations: set[Conversation] = set()
        self._scopes: set[trio.CancelScope] = set()

    async def stop_on_signals(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """On the first signal, stop after the current turn or after GRACE_PERIOD; on the second, immediately."""
        hangup = [signal.SIGHUP] if hasattr(signal, "SIGHUP") else []
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, *hangup) as received:
            task_status.started()
            async for _ in received:
                if self._stopped:
                    break
                complain("stopping after the current turn; press Ctrl-C again to stop immediately")
                self.stop()
            self._at_once = True
            for scope in self._scopes:
                scope.cancel()

    async def stop_on(self, stop: trio.Event) -> None:
        """Stop as on the first signal once `stop` is set."""
        await stop.wait()
        self.stop()

    def stop(self) -> None:
        """Stop after the current turn, or after GRACE_PERIOD."""
        self._stopped = True
        for conversation in self._conversations:
            conversation.stop()
        for worker in self._workers:
            worker.hurry()
        for scope in self._scopes:
            scope.deadline = trio.current_time() + GRACE_PERIOD

    async def run(self, plan: Plan, run: RunFolder, scoring: RunScorer) -> LongspanError | None:
        """Play all of a run's conversations. Return the first error that interrupted one."""
        with run.spending.keep_open() as record:
            return await self._run(plan, run, scoring, record)

    async def _run(self, plan: Plan, run: RunFolder, scoring: RunScorer, record: SpendingRecord) -> LongspanError | None:
        errors: list[LongspanError] = []
        self._workers.add(scoring.worker)
        if not any(run.journal(id).exists() for id in plan.manifest.played):
            try:
                await self._admit(plan.agent, Purse(self._ledger, record, str(plan.agent)))
            except LongspanError as error:
                return error
        spec = plan.manifest.judge
        model = CachedModel(spec, AnswerStore.of(run), self._ledger, record) if spec is not None else None

        trunks = plan.manifest.trunks

        async def play_group(trunk: str) -> None:
            """Play a conversation, then those that branch off it."""
            branches = [id for id in plan.tests if trunks.get(id) == trunk]
            async with self._agent_limit(plan.agent), self._limit:
                agent, purse = plan.take_agent() or (None, Purse())
                purse.ledger, purse.record, purse.payer = self._ledger, record, str(plan.agent)
                group = _Group(plan, run, branches, purse, agent=agent)
                try:
                    if await played(group, trunk):
                        for id in branches:
                            if not await played(group, id) and group.failures >= MAX_FAILURES:
                                break
                        if plan.manifest.experiments_in(trunk):
                            await play_experiments(group, trunk)
                finally:
                    await group.close()

        async def play_experiments(group: _Group, trunk: str) -> None:
            """Play the experiments of a conversation, each with a separate agent."""
            # Each experiment starts from a new agent, since the last one knows turns that the next must not know.
            experiments = plan.manifest.experiments_in(trunk)
            for id in experiments:
                await group.close()
                if not await played(group, id) and group.failures >= MAX_FAILURES:
                    return
            if all(is_closed(run.journal(id)) for id in experiments):
                Snapshots(run.snapshots(trunk), run.owner(trunk)).prune()

        async def played(group: _Group, id: str) -> bool:
            """Play a conversation. Return whether it was played to its end."""
            try:
                with group.log.keep_at(run.agent_log(id)):
                    if model is None:
                        await self._converse(group, id, scoring, None)
                    else:
                        async with BackgroundJudge(model, scoring.worker) as judging:
                            await self._converse(group, id, scoring, judging)
            except LongspanError as error:
                group.failures += 1 if isinstance(error, AgentError) else MAX_FAILURES
                group.incident(id, error)
                errors.append(error)
                return False
            group.failures = 0
            return True

        async with trio.open_nursery() as nursery:
            for id in (*plan.tests, *plan.manifest.controls):
                if id not in trunks:
                    nursery.start_soon(play_group, id)
        return errors[0] if errors else None

    async def _admit(self, spec: AgentSpec, purse: Purse) -> None:
        """Run the checks of the agent's kind before a new run, once for all runs, paid from `purse`.

        Raises InputError if the agent must not be played.
        """
        async with self._door:
            if str(spec) in self._admitted or self._stopped:
                return
            with purse.pay_in_context():
                checks = find_examination(spec)
                if checks is not None:
                    try:
                        await self._examine(spec, checks)
                    finally:
                        await checks.close()
            self._admitted.add(str(spec))

    async def _examine(self, spec: AgentSpec, checks: Examination) -> None:
        for check in checks.checks:
            finding = await check.find() if check.at_door else None
            if finding is not None and finding.verdict == "bad":
                raise InputError(
                    f"agent {spec}: {check.name}: {redact(finding.what)}; `longspan check` reports more, and unchecked=true plays it "
                    "anyway, with a warning in the result"
                )

    def _agent_limit(self, spec: AgentSpec) -> trio.CapacityLimiter:
        """Return the limit of conversations that all runs of an agent share."""
        if str(spec) not in self._agent_limits:
            self._agent_limits[str(spec)] = trio.CapacityLimiter(at_once(spec))
        return self._agent_limits[str(spec)]

    async def _converse(self, group: _Group, id: str, scoring: RunScorer, judging: BackgroundJudge | None) -> None:
        if self._stopped:
            raise StoppedError("stopped before its first turn")
        plan, run = group.plan, group.run
        prompts = PromptLog(run.prompts(id), run.owner(id)) if plan.manifest.keep_prompts else None
        group.purse.conversation = id
        with group.purse.pay_in_context():
            agent = group.agent = group.agent or make_agent(plan.agent)

        hearing = _EventForwarder(scoring.worker, self._listener)

        def on_event(event: events.Event) -> None:
            change = scoring.add(id, event)
            if judging is not None:
                judging.on_change(id, change)
            hearing.add(RunEvent(plan, run.path, scoring.gradebook, id, event, change))

        def on_fault(test: str, error: str, cause: BaseException) -> None:
            run.incident(conversation=id, type="scenario_error", test=test, error=error, traceback="".join(format_exception(cause)))

        fork = fork_in(run, id)
        live = LiveAgent(
            agent,
            snapshots=snapshots_in(run, id, fork) if group.trunk_agent is None else None,
            purse=group.purse,
            give_ideal=_ideal_channel(plan.agent, agent),
            spans=_spans(plan, run, id, agent),
            trunk=group.trunk_agent,
            shared=fork.point.turn if fork is not None else 0,
        )
        with (
            Journal(run.journal(id), shared=fork.shared if fork is not None else None, owner=run.owner(id)) as journal,
            prompts.keep_prompts() if prompts is not None else nullcontext(),
            trio.CancelScope() as scope,
        ):
            conversation = Conversation(
                setting_of(plan.manifest, id),
                plan.tests_in(id),
                live,
                journal,
                judge=judging.judge if judging is not None else None,
                listener=on_event,
                before_turn=hearing.catch_up,
                on_fault=on_fault,
                trunk=group.trunk,
                fork=fork,
            )
            self._conversations.add(conversation)
            self._scopes.add(scope)
            try:
                if group.trunk is None and fork is None:
                    await group.check(live, id)
                await conversation.play()
                await hearing.catch_up()
                await group.after(conversation, live, id)
            finally:
                hearing.end()
                self._conversations.discard(conversation)
                self._scopes.discard(scope)
        if scope.cancelled_caught:
            raise StoppedError(f"stopped while turn {conversation.turns} was being answered")

    async def results(self, run: RunFolder, scoring: RunScorer, error: LongspanError | None) -> Outcome:
        """Grade a run, or the part that was played before `error` interrupted it, and write its results.

        A stopped run has no results if its grader takes longer than GRACE_PERIOD, or if it was stopped immediately.
        """
        with trio.CancelScope() as scope:
            if self._stopped:
                scope.deadline = trio.current_time() + (0 if self._at_once and scoring.worker.busy else GRACE_PERIOD)
            self._scopes.add(scope)
            try:
                result = await scoring.worker.do(scoring.grade)
                await trio.to_thread.run_sync(scoring.save, result)
                return Outcome(run.path, result, error)
            except LongspanError as failure:
                return Outcome(run.path, None, error or failure)
            finally:
                self._scopes.discard(scope)
        remedy = f"`{quote_command('longspan', 'score', run.path)}` grades it"
        return Outcome(run.path, None, error or StoppedError(f"stopped while it was graded; {remedy}"))


@final
@dataclass(slots=True)
class _Group:
    """A conversation and its `branches`, which one agent plays in sequence, paid from `purse`.

    `trunk` is the end of the conversation once it has been played, and `trunk_agent` restores the agent to that state. `failures` counts
    the interrupted conversations in a row.
    """

    plan: Plan
    run: RunFolder
    branches: Sequence[str]
    purse: Purse
    log: AgentLog = field(default_factory=AgentLog)
    agent: Agent | None = None
    trunk: Trunk | None = None
    trunk_agent: TrunkAgent | None = None
    failures: int = 0

    async def check(self, live: LiveAgent, id: str) -> None:
        """Start the agent if it will be needed. Raise InputError if it cannot return to the start of the branches."""
        branches = [*self.branches, *self.plan.manifest.experiments_in(id)]
        several = len(self.branches) > 1 or len(branches) > len(self.branches)
        if several and not all(is_closed(self.run.journal(each)) for each in (id, *branches)):
            await live.start()
            check_branches(self.plan, live.agent)

    async def after(self, conversation: Conversation, live: LiveAgent, id: str) -> None:
        """Record that a conversation has been played to its end."""
        if self.trunk is not None:
            await live.end_branch()
        elif self.branches:
            self.trunk = conversation.end()
            snapshots, past = Snapshots(self.run.snapshots(id), self.run.owner(id)), partial(past_turns, self.run, id)
            self.trunk_agent = TrunkAgent(live.agent, snapshots, self.trunk.turns, live.depth, past)
            await live.end_trunk(self.trunk_agent)

    async def close(self) -> None:
        """Close the agent, if there is one."""
        agent, self.agent = self.agent, None
        if agent is not None:
            await close_agent(agent)

    def incident(self, id: str, error: LongspanError) -> None:
        """Record the error that interrupted a conversation."""
        if isinstance(error, AgentError):
            cause = "".join(format_exception(error.__cause__)) if error.__cause__ else ""
            told = {"traceback": cause, "stderr": "\n".join(self.log.last_lines)}
            self.run.incident(conversation=id, type="agent_error", error=str(error), **{name: text for name, text in told.items() if text})
        else:
            self.run.incident(conversation=id, type="interrupted", error=str(error))


@final
class _EventForwarder:
    """Passes a conversation's events to the listener in order.

    An event that ends a test, and all later events, wait until the test is graded.
    """

    def __init__(self, worker: GradingWorker, listener: Listener | None) -> None:
        self._worker = worker
        self._listener = listener
        self._unheard: deque[RunEvent] = deque()

    def add(self, event: RunEvent) -> None:
        """Add the conversation's next event."""
        if self._unheard or (isinstance(event.change, PlayedTest) and event.change.status == "played"):
            self._unheard.append(event)
        else:
            self._pass_on(event)

    async def catch_up(self) -> None:
        """Grade the tests that have ended, and pass on all events."""
        while self._unheard:
            event = self._unheard[0]
            await self._worker.on_change(event.conversation, event.change)
            self._pass_on(self._unheard.popleft())

    def end(self) -> None:
        """Pass on all events, even if their tests are not graded."""
        while self._unheard:
            self._pass_on(self._unheard.popleft())

    def _pass_on(self, event: RunEvent) -> None:
        if self._listener is not None:
            self._listener(event)


def _ideal_channel(spec: AgentSpec, agent: Agent) -> Callable[[str], None] | None:
    """Return the method that gives the agent ideal replies, or None. Only the kind `oracle` gets them."""
    return agent.prompt if spec.kind == "oracle" and isinstance(agent, IdealReplyAgent) else None


def _spans(plan: Plan, run: RunFolder, id: str, agent: Agent) -> Spans:
    """Return the recipient of notifications about a conversation's turns."""
    telemetry = TELEMETRY.get()
    if telemetry is None:
        return SILENT
    model = (models_of(agent) or {}).get("agent")
    known = model if isinstance(model, str) else None
    return telemetry.conversation(ConversationName(run.path.resolve().name, id, plan.manifest.nonce, str(plan.agent), known))
