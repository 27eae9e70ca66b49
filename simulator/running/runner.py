"""Plays planned runs: their conversations run concurrently up to a limit, and are graded from their journals."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from traceback import format_exception
from typing import Final, NamedTuple, final

import trio

from longspan.simulator.archive.answer_store import AnswerStore
from longspan.simulator.archive.run_folder import RunFolder
from longspan.simulator.archive.turns_shown import past_turns
from longspan.simulator.base.errors import AgentError, InputError, LongspanError, StoppedError
from longspan.simulator.base.keys import redacted
from longspan.simulator.base.terminal import complain, typed
from longspan.simulator.contract.agent import Agent, IdealReplyAgent, NoAgent, close, has_snapshots, observes, start
from longspan.simulator.contract.findings import Examination
from longspan.simulator.files.folders import remove
from longspan.simulator.gradebook.gradebook import Gradebook, grade_run, judge_costs
from longspan.simulator.gradebook.worker import GradingWorker
from longspan.simulator.journal import events
from longspan.simulator.journal.forks import Fork, fork_of
from longspan.simulator.journal.journal import Journal, is_closed
from longspan.simulator.journal.transcript import Change, PlayedTest
from longspan.simulator.judging.background import Judging
from longspan.simulator.judging.cached_model import CachedModel, check_model
from longspan.simulator.measures.ingestion import Ingestion, check_accounts
from longspan.simulator.play.conversation import Conversation
from longspan.simulator.play.live_agent import LiveAgent
from longspan.simulator.play.positions import Trunk
from longspan.simulator.play.trunk_agent import TrunkAgent
from longspan.simulator.results.result import Result
from longspan.simulator.running.coherence import check_coherence
from longspan.simulator.running.planning import Plan, check_branches, replan, setting_of
from longspan.simulator.running.scoring import Pages, Scoring
from longspan.simulator.subject.agent_log import AgentLog
from longspan.simulator.subject.ledger import Ledger, check_priced, models_of, stated_by, used_by
from longspan.simulator.subject.prompt_log import PromptLog
from longspan.simulator.subject.snapshots import Snapshots
from longspan.simulator.subject.spending_limit import NOTHING, UNLIMITED, Amount, total
from longspan.simulator.subject.telemetry import SILENT, TELEMETRY, ConversationName, Spans
from longspan.simulator.suite.agent_spec import AgentSpec, at_once, examination, inspected, make_agent
from longspan.simulator.suite.trust import clear

__all__ = [
    "Listener",
    "Outcome",
    "RunEvent",
    "check_limit",
    "describe_catch_up",
    "play",
    "play_runs",
    "replay",
    "resume",
    "spent_so_far",
    "stop_after",
]

MAX_CONVERSATIONS: Final = 100
"""The most conversations played at once."""

MAX_FAILURES: Final = 2
"""After this many branches in a row have failed, the others of their trunk are left for `longspan resume`."""

GRACE_PERIOD: Final = 10.0
"""How many seconds the current turn may take to finish when a run is stopped."""


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

    `kept` is False if its agent failed before the first reply: nothing was played, and there is no folder.
    """

    folder: Path
    result: Result | None
    error: LongspanError | None
    kept: bool = True


async def play(
    plans: Sequence[Plan],
    *,
    listener: Listener | None = None,
    pages: Pages | None = None,
    signals: bool = False,
    limit: Amount = UNLIMITED,
    seconds: float = inf,
) -> list[Outcome]:
    """Play new runs concurrently, at most MAX_CONVERSATIONS conversations at a time, and grade them.

    Together they spend at most `limit`; a turn that could exceed it interrupts its run. Raises InputError if there is a limit and an
    agent's price is unknown. `pages` makes the page of each run; without it, there is none.

    An interrupted run is graded as far as it was played; the others continue. With `signals`, Ctrl-C and SIGTERM stop all runs after the
    current turn; a second signal stops them at once. After `seconds` of real time, the runs also stop after the current turn.
    """
    check_limit(plans, limit)
    runs = [RunFolder.create(plan.out, plan.name, plan.manifest) for plan in plans]
    pairs = list(zip(plans, runs, strict=True))
    return await play_runs(pairs, Ledger(limit), listener=listener, pages=pages, signals=signals, seconds=seconds, new=True)


async def resume(
    run: RunFolder,
    agent: str,
    *,
    listener: Listener | None = None,
    pages: Pages | None = None,
    signals: bool = False,
    limit: Amount = UNLIMITED,
    seconds: float = inf,
) -> Outcome:
    """Resume a run where its journals end, and grade it. A finished run is only replayed and compared with its journals.

    The run spends at most `limit`, including past spending, and is stopped after `seconds` of real time.

    Raises InputError if another process is playing the run, or it cannot be planned again.
    """
    plan = replan(run.manifest, agent, run.path.parent)
    check_limit([plan], limit)
    ledger = Ledger(limit, *(spent_so_far([run]) if limit != UNLIMITED else ()))
    return (await play_runs([(plan, run)], ledger, listener=listener, pages=pages, signals=signals, seconds=seconds))[0]


def check_limit(plans: Sequence[Plan], limit: Amount) -> None:
    """Check that a limit can be enforced, and warn about agents whose cost is known only from their replies.

    Raises InputError if a model's price is unknown.
    """
    if limit == UNLIMITED:
        return
    for plan in plans:
        clear(plan.manifest, "agent", "judge")
    in_dollars, in_tokens = limit.dollars < UNLIMITED.dollars, limit.tokens < UNLIMITED.tokens
    for spec in {str(plan.agent): plan.agent for plan in plans}.values():
        with inspected(spec) as agent:
            if models_of(agent) is None:
                told = " and ".join(["its cost"] * in_dollars + ["its usage"] * in_tokens)
                complain(f"agent {spec}: what a reply takes is not known beforehand; the first that does not tell {told} stops it")
            elif in_dollars:
                check_priced(agent, str(spec))
    for judge in {plan.manifest.judge for plan in plans if plan.manifest.judge is not None}:
        check_model(judge, limit.dollars)


def spent_so_far(runs: Sequence[RunFolder]) -> tuple[Amount, Amount]:
    """Return how much runs have spent so far, as far as it is known, including their judges, and the most that a single reply has cost."""
    spent, dearest = [], NOTHING
    for run in runs:
        for transcript in run.transcripts(experiments=True).values():
            for _, usage, cost in transcript.used:
                spent.append(_amount(usage, cost))
                dearest = dearest.most(spent[-1])
        spent += [_amount(usage, cost) for _, usage, cost in judge_costs(run)]
    return total(spent), dearest


def _amount(usage: Mapping[str, int], cost: float | None) -> Amount:
    return Amount(cost or 0.0, usage.get("input_tokens", 0) + usage.get("output_tokens", 0))


async def describe_catch_up(run: RunFolder, spec: AgentSpec) -> tuple[str, bool]:
    """Describe in a line what bringing the agent to the end of the journals will take, and whether turns are sent to it again.

    Raises AgentError if the agent cannot be started.
    """
    if all(is_closed(run.journal(id)) for id in run.manifest.played):
        return "the run is finished: it is only replayed and compared with its journals", False
    transcripts, trunks = run.transcripts(experiments=True), run.manifest.trunks
    alone = (*run.manifest.conversations, *run.manifest.controls)
    unfinished = [id for id in alone if id not in transcripts or not transcripts[id].closed]
    agent = make_agent(spec)
    try:
        await start(agent)
    finally:
        await close(agent)
    snapshots, shown = 0, sum(transcripts[id].own_turns for id in unfinished if id in trunks and id in transcripts)
    for id in dict.fromkeys(trunks.get(id, id) for id in unfinished):  # a branch's agent is brought to the end of its trunk
        turns = transcripts[id].turns if id in transcripts else 0
        known = Snapshots(run.snapshots(id), run.owner(id)).newest(turns) if has_snapshots(agent) else 0
        snapshots += known > 0
        shown += turns - known
    for id, experiment in run.manifest.experiments.items():
        if experiment.shares and not is_closed(run.journal(id)) and is_closed(run.journal(experiment.conversation)):
            fork = fork_of(experiment, run.journal(experiment.conversation))
            saved = _snapshots(run, id, fork) if has_snapshots(agent) else None
            known = fork.since if saved is None else saved.newest(fork.point.turn)
            snapshots += saved is not None and known > 0
            shown += (transcripts[id].turns if id in transcripts else fork.point.turn) - known
    where = f"from {snapshots} snapshot{'s'[: snapshots != 1]}" if snapshots else "from the beginning"
    if observes(agent) or not shown:
        return f"{spec} continues {where} and is shown the {shown:,} turns after that without being asked", False
    return f"{spec} cannot be shown turns: {shown:,} turns are sent to it again, {where}", True


async def play_runs(
    pairs: Sequence[tuple[Plan, RunFolder]],
    ledger: Ledger,
    *,
    listener: Listener | None = None,
    pages: Pages | None = None,
    signals: bool = False,
    stop: trio.Event | None = None,
    seconds: float = inf,
    new: bool = False,
) -> list[Outcome]:
    """Play runs from the end of their journals, new ones from the beginning, and grade them; see `play`.

    They stop after the current turn once `stop` is set, or after `seconds` of real time. `new`: their folders were made for this, and are
    deleted if the agent fails before its first reply. Raises InputError if another process is playing one of the runs, and for anything
    that the user has not allowed (see `gate`).
    """
    for plan, _ in pairs:
        clear(plan.manifest, "judge")
    player = _Player(trio.CapacityLimiter(MAX_CONVERSATIONS), listener, ledger)
    outcomes: dict[Path, Outcome] = {}

    async def play_run(plan: Plan, run: RunFolder) -> None:
        scoring = Scoring(run, pages)
        error = await player.run(plan, run, scoring)
        outcome = await player.results(run, scoring, error)
        if new and _is_empty(outcome):
            remove(run.path)
            outcome = Outcome(run.path, None, outcome.error, kept=False)
        outcomes[run.path] = outcome

    with ExitStack() as locks:
        for _, run in pairs:
            locks.enter_context(run.lock())
        async with trio.open_nursery() as nursery:
            if signals:
                await nursery.start(player.stop_on_signals)
            if stop is not None:
                nursery.start_soon(player.stop_on, stop)
            if seconds < inf:
                nursery.start_soon(stop_after, seconds, player.stop)
            async with trio.open_nursery() as runs:
                for plan, run in pairs:
                    runs.start_soon(play_run, plan, run)
            nursery.cancel_scope.cancel()
    return [outcomes[run.path] for _, run in pairs]


def _is_empty(outcome: Outcome) -> bool:
    """Return whether a run was interrupted by its agent or its settings before there was a reply, and before anything was paid for."""
    result = outcome.result
    if not isinstance(outcome.error, AgentError | InputError) or result is None:
        return False
    return not (result.turns or result.costs or (result.control is not None and result.control.turns))


async def stop_after(seconds: float, stop: Callable[[], None]) -> None:
    """Call `stop` when the time allowed for the runs is over."""
    await trio.sleep(seconds)
    complain("the time limit is reached: stopping after the current turn")
    stop()


@final
class _Player:
    """Plays runs that share a limit of conversations, a ledger and a listener, and stops them."""

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
        """Stop after the current turn, or after GRACE_PERIOD, on the first signal; on the second at once."""
        hangup = [signal.SIGHUP] if hasattr(signal, "SIGHUP") else []
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, *hangup) as received:
            task_status.started()
            async for _ in received:
                if self._stopped:
                    break
                complain("stopping after the current turn; press Ctrl-C again to stop at once")
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

    async def run(self, plan: Plan, run: RunFolder, scoring: Scoring) -> LongspanError | None:
        """Play all of a run's conversations. Return the first error that interrupted one."""
        errors: list[LongspanError] = []
        self._workers.add(scoring.worker)
        if not any(run.journal(id).exists() for id in plan.manifest.played):
            try:
                await self._admit(plan.agent)
            except LongspanError as error:
                return error
        spec = plan.manifest.judge
        model = CachedModel(spec, AnswerStore.of(run), self._ledger) if spec is not None else None

        trunks = plan.manifest.trunks

        async def play_group(trunk: str) -> None:
            """Play a conversation, then those that branch off it."""
            branches = [id for id in plan.tests if trunks.get(id) == trunk]
            async with self._agent_limit(plan.agent), self._limit:
                group = _Group(plan, run, branches)
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
            """Play the experiments of a conversation, each with an agent of its own."""
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
                with group.log.kept(run.agent_log(id)):
                    if model is None:
                        await self._converse(group, id, scoring, None)
                    else:
                        async with Judging(model, scoring.worker) as judging:
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

    async def _admit(self, spec: AgentSpec) -> None:
        """Have the kind of agent check it before a new run, once for all runs. Raises InputError if it is not fit to be played."""
        async with self._door:
            if str(spec) in self._admitted or self._stopped:
                return
            checks = examination(spec)
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
                    f"agent {spec}: {check.name}: {redacted(finding.what)}; `longspan check` tells more, and unchecked=true plays it as it "
                    "is, which the result then says"
                )
        took = checks.took()
        self._ledger.count(used_by(took), stated_by(took))

    def _agent_limit(self, spec: AgentSpec) -> trio.CapacityLimiter:
        """Return the limit of conversations that all runs of an agent share."""
        if str(spec) not in self._agent_limits:
            self._agent_limits[str(spec)] = trio.CapacityLimiter(at_once(spec))
        return self._agent_limits[str(spec)]

    async def _converse(self, group: _Group, id: str, scoring: Scoring, judging: Judging | None) -> None:
        if self._stopped:
            raise StoppedError("stopped before its first turn")
        plan, run = group.plan, group.run
        prompts = PromptLog(run.prompts(id), run.owner(id)) if plan.manifest.keep_prompts else None
        agent = group.agent = group.agent or make_agent(plan.agent)

        hearing = _Hearing(scoring.worker, self._listener)

        def on_event(event: events.Event) -> None:
            change = scoring.add(id, event)
            if judging is not None:
                judging.on_change(id, change)
            hearing.add(RunEvent(plan, run.path, scoring.gradebook, id, event, change))

        def on_fault(test: str, error: str, cause: BaseException) -> None:
            run.incident(conversation=id, type="scenario_error", test=test, error=error, traceback="".join(format_exception(cause)))

        fork = _fork(run, id)
        live = LiveAgent(
            agent,
            snapshots=_snapshots(run, id, fork) if group.trunk_agent is None else None,
            ledger=self._ledger,
            give_ideal=_ideal_channel(plan.agent, agent),
            spans=_spans(plan, run, id, agent),
            trunk=group.trunk_agent,
            shared=fork.point.turn if fork is not None else 0,
            payer=str(plan.agent),
        )
        with (
            Journal(run.journal(id), shared=fork.shared if fork is not None else None, owner=run.owner(id)) as journal,
            prompts.kept() if prompts is not None else nullcontext(),
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

    async def results(self, run: RunFolder, scoring: Scoring, error: LongspanError | None) -> Outcome:
        """Grade a run, or the part that was played before `error` interrupted it, and write its results.

        A run that is stopped goes without them if its grader takes longer than GRACE_PERIOD, or if it is stopped at once.
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
        remedy = f"`{typed('longspan', 'score', run.path)}` grades it"
        return Outcome(run.path, None, error or StoppedError(f"stopped while it was graded; {remedy}"))


@final
@dataclass(slots=True)
class _Group:
    """A conversation and its `branches`, which are played by one agent, one after another.

    `trunk` is the end of the first, once it has been played, and `trunk_agent` brings the agent back there. `failures` counts the
    conversations that were interrupted in a row.
    """

    plan: Plan
    run: RunFolder
    branches: Sequence[str]
    log: AgentLog = field(default_factory=AgentLog)
    agent: Agent | None = None
    trunk: Trunk | None = None
    trunk_agent: TrunkAgent | None = None
    failures: int = 0

    async def check(self, live: LiveAgent, id: str) -> None:
        """Start the agent, if it will be needed, and raise InputError if it cannot be brought to where the branches begin."""
        branches = [*self.branches, *self.plan.manifest.experiments_in(id)]
        several = len(self.branches) > 1 or len(branches) > len(self.branches)
        if several and not all(is_closed(self.run.journal(each)) for each in (id, *branches)):
            await live.start()
            check_branches(self.plan, live.agent)

    async def after(self, conversation: Conversation, live: LiveAgent, id: str) -> None:
        """Note that a conversation has been played to its end."""
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
            await close(agent)

    def incident(self, id: str, error: LongspanError) -> None:
        """Record the error that interrupted a conversation."""
        if isinstance(error, AgentError):
            cause = "".join(format_exception(error.__cause__)) if error.__cause__ else ""
            told = {"traceback": cause, "stderr": "\n".join(self.log.last_lines)}
            self.run.incident(conversation=id, type="agent_error", error=str(error), **{name: text for name, text in told.items() if text})
        else:
            self.run.incident(conversation=id, type="interrupted", error=str(error))


@final
class _Hearing:
    """Passes a conversation's events to the listener in order. An event that ends a test, and the events after it, are passed on once the
    test is graded."""

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
        """Pass on all events, whether or not their tests are graded."""
        while self._unheard:
            self._pass_on(self._unheard.popleft())

    def _pass_on(self, event: RunEvent) -> None:
        if self._listener is not None:
            self._listener(event)


def _fork(run: RunFolder, id: str) -> Fork | None:
    """Return where a conversation leaves another; None if it shares nothing with it."""
    experiment = run.manifest.experiments.get(id)
    return fork_of(experiment, run.journal(experiment.conversation)) if experiment is not None and experiment.shares else None


def _snapshots(run: RunFolder, id: str, fork: Fork | None) -> Snapshots | None:
    """Return the snapshots of a conversation's agent: a twin takes the other conversation's from before they part; a lesion has none."""
    if fork is None:
        return Snapshots(run.snapshots(id), run.owner(id))
    trunk = fork.point.conversation
    kept = Snapshots(run.snapshots(trunk), run.owner(trunk), copied=True, until=fork.point.turn)
    return kept if fork.experiment.kind == "twin" else None


def _ideal_channel(spec: AgentSpec, agent: Agent) -> Callable[[str], None] | None:
    """Return the method that gives the agent ideal replies, which only the kind `oracle` receives, or None."""
    return agent.prompt if spec.kind == "oracle" and isinstance(agent, IdealReplyAgent) else None


def _spans(plan: Plan, run: RunFolder, id: str, agent: Agent) -> Spans:
    """Return the recipient of notifications about a conversation's turns."""
    telemetry = TELEMETRY.get()
    if telemetry is None:
        return SILENT
    model = (models_of(agent) or {}).get("agent")
    known = model if isinstance(model, str) else None
    return telemetry.conversation(ConversationName(run.path.resolve().name, id, plan.manifest.nonce, str(plan.agent), known))


async def replay(run: RunFolder) -> Result:
    """Replay a run from its journals, without a model, and grade it. Writes nothing.

    An imported run was not scheduled by the conductor, so its events are only checked for consistency.

    Raises ReplayError if an event differs from the journal or costs were counted twice, StoppedError if a journal ends before its
    conversation does.
    """
    if run.manifest.imported is not None:
        check_coherence(run)
        return grade_run(run)
    plan = replan(run.manifest, "silent", run.path.parent)
    gradebook = Gradebook(run.manifest)
    trunks: dict[str, Trunk] = {}
    for id, tests in plan.tests.items():
        if not run.journal(id).exists():
            raise StoppedError(f"{run.path}: conversation {id} has not begun; `longspan resume` plays it")
        with Journal(run.journal(id), replay_only=True, owner=run.owner(id)) as journal:
            setting, trunk = setting_of(plan.manifest, id), trunks.get(plan.manifest.trunks.get(id, ""))
            conversation = Conversation(setting, tests, LiveAgent(NoAgent()), journal, listener=partial(gradebook.add, id), trunk=trunk)
            await conversation.play()
            if setting.branched:
                trunks[id] = conversation.end()
    for id in plan.manifest.experiments:
        if not run.journal(id).exists():
            raise StoppedError(f"{run.path}: conversation {id} has not begun; `longspan resume` plays it")
        fork = _fork(run, id)
        shared = fork.shared if fork is not None else None
        with Journal(run.journal(id), replay_only=True, shared=shared, owner=run.owner(id)) as journal:
            setting, tests = setting_of(plan.manifest, id), plan.tests_in(id)
            await Conversation(setting, tests, LiveAgent(NoAgent()), journal, listener=partial(gradebook.add, id), fork=fork).play()
    check_accounts(run, gradebook.read_by(Ingestion))
    return gradebook.result(run)
