"""Plays planned runs: their conversations run concurrently up to a limit, and are graded from their journals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from math import inf
from pathlib import Path
from typing import Final

import trio

from longspan.simulator.base.errors import AgentError, InputError, StoppedError
from longspan.simulator.base.files.folders import remove_folder
from longspan.simulator.base.terminal import complain
from longspan.simulator.contract.agent import NoAgent, can_observe, can_rejoin, close_agent, has_snapshots, start_agent
from longspan.simulator.journal.forks import fork_of
from longspan.simulator.journal.journal import Journal, is_closed
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.play.conversation import Conversation
from longspan.simulator.play.live_agent import LiveAgent
from longspan.simulator.play.positions import Trunk
from longspan.simulator.results.gradebook.gradebook import Gradebook, grade_run
from longspan.simulator.results.judging.cached_model import check_model
from longspan.simulator.results.measures.ingestion import Ingestion, check_accounts
from longspan.simulator.results.result import Result
from longspan.simulator.running.coherence import check_coherence
from longspan.simulator.running.forked import fork_in, snapshots_in
from longspan.simulator.running.planning import Plan, replan_run, setting_of
from longspan.simulator.running.player import Listener, Outcome, Player
from longspan.simulator.running.scoring import Pages, RunScorer
from longspan.simulator.subject.ledger import Ledger, check_priced, models_of
from longspan.simulator.subject.snapshots import Snapshots
from longspan.simulator.subject.spending_limit import NOTHING, UNLIMITED, Amount, sum_amounts
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent
from longspan.simulator.suite.trust import require_trust

__all__ = ["check_limit", "describe_catch_up", "play_plans", "play_runs", "replay_run", "resume_run", "stop_after", "sum_spending"]

MAX_CONVERSATIONS: Final = 100
"""The maximum number of concurrent conversations."""


async def play_plans(
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
    agent's price is unknown. `pages` makes the page of each run, if given.

    An interrupted run is graded as far as it was played; the others continue. With `signals`, Ctrl-C and SIGTERM stop all runs after the
    current turn; a second signal stops them immediately. After `seconds` of real time, the runs also stop after the current turn.
    """
    check_limit(plans, limit)
    runs = [RunFolder.create(plan.out, plan.name, plan.manifest) for plan in plans]
    pairs = list(zip(plans, runs, strict=True))
    return await play_runs(pairs, Ledger(limit), listener=listener, pages=pages, signals=signals, seconds=seconds, new=True)


async def resume_run(
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
    plan = replan_run(run.manifest, agent, run.path.parent)
    check_limit([plan], limit)
    ledger = Ledger(limit, *(sum_spending([run]) if limit != UNLIMITED else ()))
    return (await play_runs([(plan, run)], ledger, listener=listener, pages=pages, signals=signals, seconds=seconds))[0]


def check_limit(plans: Sequence[Plan], limit: Amount) -> None:
    """Check that a limit can be enforced, and warn about agents whose cost is known only from their replies.

    Raises InputError if a model's price is unknown.
    """
    if limit == UNLIMITED:
        return
    for plan in plans:
        require_trust(plan.manifest, "agent", "judge")
    in_dollars, in_tokens = limit.dollars < UNLIMITED.dollars, limit.tokens < UNLIMITED.tokens
    for plan in {str(plan.agent): plan for plan in plans}.values():
        spec = plan.agent
        with plan.inspect_agent() as agent:
            if models_of(agent) is None:
                told = " and ".join(["its cost"] * in_dollars + ["its usage"] * in_tokens)
                complain(f"agent {spec}: the usage of a reply is not known beforehand; the first one that does not report {told} stops it")
            elif in_dollars:
                check_priced(agent, str(spec))
    for judge in {plan.manifest.judge for plan in plans if plan.manifest.judge is not None}:
        check_model(judge, limit.dollars)


def sum_spending(runs: Sequence[RunFolder]) -> tuple[Amount, Amount]:
    """Return how much runs and their judges have spent or may have spent so far, and the highest cost of a single event.

    Raises InputError for a run whose replies cost something, but whose spending was not recorded.
    """
    spent, dearest = [], NOTHING
    for run in runs:
        if not run.spending.path.exists():
            if any(cost for transcript in run.transcripts(experiments=True).values() for _, _, cost in transcript.used):
                raise InputError(f"{run.spending.path}: missing, so that a limit cannot include what was spent; restore it from a copy")
            continue
        amount, most = run.spending.sum_spent()
        spent.append(amount)
        dearest = dearest.most(most)
    return sum_amounts(spent), dearest


async def describe_catch_up(run: RunFolder, spec: AgentSpec) -> tuple[str, bool]:
    """Describe in a line the effort to bring the agent to the end of the journals. Also return whether turns are sent to it again.

    Raises AgentError if the agent cannot be started.
    """
    if all(is_closed(run.journal(id)) for id in run.manifest.played):
        return "the run is finished: it is only replayed and compared with its journals", False
    transcripts, trunks = run.transcripts(experiments=True), run.manifest.trunks
    alone = (*run.manifest.conversations, *run.manifest.controls)
    unfinished = [id for id in alone if id not in transcripts or not transcripts[id].closed]
    agent = make_agent(spec)
    try:
        await start_agent(agent)
    finally:
        await close_agent(agent)
    snapshots, shown = 0, sum(transcripts[id].own_turns for id in unfinished if id in trunks and id in transcripts)
    for id in dict.fromkeys(trunks.get(id, id) for id in unfinished):  # a branch's agent is brought to the end of its trunk
        turns = transcripts[id].turns if id in transcripts else 0
        known = Snapshots(run.snapshots(id), run.owner(id)).newest(turns) if has_snapshots(agent) else 0
        snapshots += known > 0
        shown += 0 if can_rejoin(agent) and id in unfinished else turns - known
    for id, experiment in run.manifest.experiments.items():
        if experiment.shares and not is_closed(run.journal(id)) and is_closed(run.journal(experiment.conversation)):
            fork = fork_of(experiment, run.journal(experiment.conversation))
            saved = snapshots_in(run, id, fork) if has_snapshots(agent) else None
            known = fork.since if saved is None else saved.newest(fork.point.turn)
            snapshots += saved is not None and known > 0
            shown += (transcripts[id].turns if id in transcripts else fork.point.turn) - known
    where = f"from {snapshots} snapshot{'s'[: snapshots != 1]}" if snapshots else "from the beginning"
    where = "on its server" if can_rejoin(agent) else where
    if can_observe(agent) or not shown:
        return f"{spec} continues {where} and observes the {shown:,} turns after that", False
    return f"{spec} has no observe: {shown:,} turns are sent to it again, {where}", True


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
    """Play runs from the end of their journals, new ones from the beginning, and grade them; see `play_plans`.

    They stop after the current turn once `stop` is set, or after `seconds` of real time. `new`: their folders are new, and are deleted if
    the agent fails before its first reply. Raises InputError if another process is playing one of the runs, and for anything that the user
    has not allowed (see `trust`).
    """
    for plan, _ in pairs:
        require_trust(plan.manifest, "judge")
    player = Player(trio.CapacityLimiter(MAX_CONVERSATIONS), listener, ledger)
    outcomes: dict[Path, Outcome] = {}

    async def play_run(plan: Plan, run: RunFolder) -> None:
        scoring = RunScorer(run, pages)
        error = await player.run(plan, run, scoring)
        outcome = await player.results(run, scoring, error)
        if new and _is_empty(outcome) and run.spending.is_negligible():
            remove_folder(run.path)
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
    """Return whether a run was interrupted by its agent or its settings before the first reply."""
    result = outcome.result
    if not isinstance(outcome.error, AgentError | InputError) or result is None:
        return False
    return not (result.turns or result.costs or (result.control is not None and result.control.turns))


async def stop_after(seconds: float, stop: Callable[[], None]) -> None:
    """Call `stop` when the runs' time is over."""
    await trio.sleep(seconds)
    complain("the time limit is reached: stopping after the current turn")
    stop()


async def replay_run(run: RunFolder) -> Result:
    """Replay a run from its journals, without a model, and grade it. Writes nothing.

    The events of an imported conversation are only checked for consistency, because the conductor did not schedule them.

    Raises ReplayError if an event differs from the journal or costs were counted twice, and StoppedError if a journal ends before its
    conversation does.
    """
    imported = run.manifest.imported
    if imported is not None and not imported.only_answers:
        check_coherence(run)
        return grade_run(run)
    # No agent is called, so any kind will do, and the run's own need not be installed.
    plan = replan_run(run.manifest, "silent", run.path.parent)
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
        fork = fork_in(run, id)
        shared = fork.shared if fork is not None else None
        with Journal(run.journal(id), replay_only=True, shared=shared, owner=run.owner(id)) as journal:
            setting, tests = setting_of(plan.manifest, id), plan.tests_in(id)
            await Conversation(setting, tests, LiveAgent(NoAgent()), journal, listener=partial(gradebook.add, id), fork=fork).play()
    check_accounts(run, gradebook.read_by(Ingestion))
    return gradebook.result(run)
