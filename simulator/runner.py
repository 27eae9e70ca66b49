"""Runs: planned elsewhere, played in a nursery of conversations under a limit, graded from their journals."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from traceback import format_exception
from typing import Final, NamedTuple, final

import trio

from longspan.simulator import events
from longspan.simulator.agent import Agent, IdealReplyAgent, NoAgent, close, has_snapshots, observes, start
from longspan.simulator.agent_spec import AgentSpec, make_agent
from longspan.simulator.answer_store import AnswerStore
from longspan.simulator.coherence import check
from longspan.simulator.conversation import Conversation
from longspan.simulator.errors import AgentError, LongspanError, StoppedError
from longspan.simulator.grading.grades import Gradebook, Result, grade_run, judge_costs
from longspan.simulator.journal import Journal, is_closed
from longspan.simulator.judging.background import Judging
from longspan.simulator.judging.cached_model import CachedModel, check_model
from longspan.simulator.ledger import Ledger, check_priced, known_cost
from longspan.simulator.live_agent import LiveAgent
from longspan.simulator.planning import Plan, replan, setting_of
from longspan.simulator.run_folder import RunFolder
from longspan.simulator.scoring import Scoring
from longspan.simulator.snapshots import Snapshots
from longspan.simulator.transcript import Change

__all__ = [
    "Listener",
    "Outcome",
    "RunEvent",
    "check_limit",
    "cost_so_far",
    "describe_catch_up",
    "play",
    "play_runs",
    "replay",
    "resume",
]

MAX_CONVERSATIONS: Final = 100
"""Conversations played at once."""

GRACE_PERIOD: Final = 10.0
"""Seconds that the turn in hand gets to end when a run is stopped."""


@final
class RunEvent(NamedTuple):
    """An event of a run that is played: its plan, the folder it lands in, its grades so far, the conversation, the event, and what
    that changed."""

    plan: Plan
    folder: Path
    gradebook: Gradebook
    conversation: str
    event: events.Event
    change: Change


Listener = Callable[[RunEvent], None]
"""Who is told what happens."""


@final
@dataclass(frozen=True, slots=True)
class Outcome:
    """A run that was played: its folder, its results (None where they cannot be written), and the error that broke it off."""

    folder: Path
    result: Result | None
    error: LongspanError | None


async def play(
    plans: Sequence[Plan],
    *,
    listener: Listener | None = None,
    signals: bool = False,
    most: float = inf,
) -> list[Outcome]:
    """Play new runs concurrently, at most MAX_CONVERSATIONS conversations at a time, and grade them.

    Together they spend at most `most` dollars; what would pass that is broken off. Raises InputError for an agent whose
    price is unknown, where there is such a limit.

    A run that is broken off is graded as far as it came; the others go on. With `signals`, Ctrl-C and SIGTERM stop all
    of them after the turn in hand; a second one does not wait for it.
    """
    check_limit(plans, most)
    runs = [RunFolder.create(each.out, each.name, each.manifest) for each in plans]
    return await play_runs(list(zip(plans, runs, strict=True)), Ledger(most), listener=listener, signals=signals)


async def resume(
    run: RunFolder,
    agent: str,
    *,
    listener: Listener | None = None,
    signals: bool = False,
    most: float = inf,
) -> Outcome:
    """Go on with a run where its journals end, and grade it. A finished one is only compared with what would be played.

    All in all, with what it has spent already, the run costs at most `most` dollars.

    Raises InputError where another process plays it, or it cannot be planned again.
    """
    each = replan(run.manifest, agent, run.path.parent)
    check_limit([each], most)
    ledger = Ledger(most, spent=cost_so_far(run) if most < inf else 0.0)
    return (await play_runs([(each, run)], ledger, listener=listener, signals=signals))[0]


def check_limit(plans: Sequence[Plan], most: float) -> None:
    """Whether a limit of `most` dollars (inf: none) can be kept. Raises InputError where a price is not known."""
    if most < inf:
        for each in plans:
            check_priced(make_agent(each.agent), str(each.agent))
            if each.manifest.judge is not None:
                check_model(each.manifest.judge, most)


def cost_so_far(run: RunFolder) -> float:
    """Dollars that a run is known to have cost so far, its judge included."""
    used = [entry for transcript in run.transcripts().values() for entry in transcript.used]
    return known_cost(cost for _, _, cost in [*used, *judge_costs(run)])


async def describe_catch_up(run: RunFolder, spec: AgentSpec) -> tuple[str, bool]:
    """What bringing the agent back to where the journals end will take, in a line; and whether it is asked turns again.

    Raises AgentError where the agent cannot be asked what it can do.
    """
    if all(is_closed(run.journal(id)) for id in run.manifest.conversations):
        return "the run is finished: it is only compared with what would be played", False
    unfinished = {id: transcript for id, transcript in run.transcripts().items() if not transcript.closed}
    agent = make_agent(spec)
    try:
        await start(agent)
    finally:
        await close(agent)
    shown = snapshots = 0
    for id, transcript in unfinished.items():
        known = Snapshots(run.snapshots(id)).newest(transcript.turns) if has_snapshots(agent) else 0
        snapshots += known > 0
        shown += transcript.turns - known
    where = f"from {snapshots} snapshot{'s'[: snapshots != 1]}" if snapshots else "from the beginning"
    if observes(agent) or not shown:
        return f"{spec} goes on {where}, shown {shown:,} turns after that without being asked", False
    return f"{spec} cannot be shown turns: it is asked {shown:,} turns again, {where}", True


async def play_runs(
    pairs: Sequence[tuple[Plan, RunFolder]],
    ledger: Ledger,
    *,
    listener: Listener | None = None,
    signals: bool = False,
    stop: trio.Event | None = None,
) -> list[Outcome]:
    """Play runs from where their journals end, new ones from the beginning, and grade them; see `play`. They stop after the
    turn in hand once `stop` is set.

    Raises InputError where another process plays one of them.
    """
    playing = _Playing(trio.CapacityLimiter(MAX_CONVERSATIONS), listener, ledger)
    outcomes: dict[Path, Outcome] = {}

    async def one(each: Plan, run: RunFolder) -> None:
        scoring = Scoring(run)
        error = await playing.run(each, run, scoring)
        try:
            outcomes[run.path] = Outcome(run.path, scoring.write(), error)
        except LongspanError as failure:
            outcomes[run.path] = Outcome(run.path, None, error or failure)

    with ExitStack() as locks:
        for _, run in pairs:
            locks.enter_context(run.lock())
        async with trio.open_nursery() as nursery:
            if signals:
                await nursery.start(playing.obey)
            if stop is not None:
                nursery.start_soon(playing.stop_at, stop)
            async with trio.open_nursery() as runs:
                for each, run in pairs:
                    runs.start_soon(one, each, run)
            nursery.cancel_scope.cancel()
    return [outcomes[run.path] for _, run in pairs]


@final
class _Playing:
    """Runs being played: the limit they share, who listens, and how they are stopped."""

    def __init__(self, limit: trio.CapacityLimiter, listener: Listener | None, ledger: Ledger) -> None:
        self._limit = limit
        self._ledger = ledger
        self._listener = listener
        self._stopped = False
        self._conversations: set[Conversation] = set()
        self._scopes: set[trio.CancelScope] = set()

    async def obey(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Stop on the first signal after the turn in hand, or after a grace; on the second at once."""
        hangup = [signal.SIGHUP] if hasattr(signal, "SIGHUP") else []
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, *hangup) as received:
            task_status.started()
            async for _ in received:
                if self._stopped:
                    break
                print("stopping after the turn in hand; once more stops at once", file=sys.stderr, flush=True)
                self._stop()
            for scope in self._scopes:
                scope.cancel()

    async def stop_at(self, stop: trio.Event) -> None:
        """Stop as on a first signal once `stop` is set."""
        await stop.wait()
        self._stop()

    def _stop(self) -> None:
        self._stopped = True
        for conversation in self._conversations:
            conversation.stop()
        for scope in self._scopes:
            scope.deadline = trio.current_time() + GRACE_PERIOD

    async def run(self, each: Plan, run: RunFolder, scoring: Scoring) -> LongspanError | None:
        """Play all of a run's conversations. Returns the first error that broke one off."""
        errors: list[LongspanError] = []
        spec = each.manifest.judge
        model = CachedModel(spec, AnswerStore(run.path), self._ledger) if spec is not None else None

        async def one(id: str) -> None:
            async with self._limit:
                try:
                    if model is None:
                        await self._converse(each, run, id, scoring, None)
                    else:
                        async with Judging(model, scoring.gradebook) as judging:
                            await self._converse(each, run, id, scoring, judging)
                except AgentError as error:
                    cause = "".join(format_exception(error.__cause__)) if error.__cause__ else ""
                    run.incident(conversation=id, type="agent_error", error=str(error), traceback=cause)
                    errors.append(error)
                except LongspanError as error:
                    run.incident(conversation=id, type="broken_off", error=str(error))
                    errors.append(error)

        async with trio.open_nursery() as nursery:
            for id in each.tests:
                nursery.start_soon(one, id)
        return errors[0] if errors else None

    async def _converse(self, each: Plan, run: RunFolder, id: str, scoring: Scoring, judging: Judging | None) -> None:
        if self._stopped:
            raise StoppedError("stopped before its first turn")
        agent = make_agent(each.agent)

        def forward(event: events.Event) -> None:
            change = scoring.add(id, event)
            if judging is not None:
                judging.heard(id, change)
            if self._listener is not None:
                self._listener(RunEvent(each, run.path, scoring.gradebook, id, event, change))

        with Journal(run.journal(id)) as journal, trio.CancelScope() as scope:
            conversation = Conversation(
                setting_of(each.manifest, id),
                each.tests[id],
                LiveAgent(agent, snapshots=Snapshots(run.snapshots(id)), ledger=self._ledger, give_ideal=_ideal_channel(each.agent, agent)),
                journal,
                judge=judging.judge if judging is not None else None,
                listener=forward,
            )
            self._conversations.add(conversation)
            self._scopes.add(scope)
            try:
                await conversation.play()
            finally:
                self._conversations.discard(conversation)
                self._scopes.discard(scope)
                await close(agent)
        if scope.cancelled_caught:
            raise StoppedError(f"stopped while turn {conversation.turns} was being answered")


def _ideal_channel(spec: AgentSpec, agent: Agent) -> Callable[[str], None] | None:
    """How the agent is given ideal replies: only the kind `oracle` ever is."""
    return agent.prompt if spec.kind == "oracle" and isinstance(agent, IdealReplyAgent) else None


async def replay(run: RunFolder) -> Result:
    """Play a run again from its journals, with no model, and grade it; writes nothing. One that was imported has no order of
    the conductor's to compare with: its events only have to follow from one another.

    Raises ReplayError where an event is not what its journal says, StoppedError where a journal ends before its
    conversation does.
    """
    if run.manifest.imported is not None:
        check(run)
        return grade_run(run)
    each = replan(run.manifest, "silent", run.path.parent)
    gradebook = Gradebook(run.manifest)
    for id, tests in each.tests.items():
        if not run.journal(id).exists():
            raise StoppedError(f"{run.path}: the conversation {id} was never begun; `longspan resume` plays it")
        with Journal(run.journal(id), replay_only=True) as journal:
            live = LiveAgent(NoAgent())
            await Conversation(setting_of(each.manifest, id), tests, live, journal, listener=partial(gradebook.add, id)).play()
    return gradebook.result(run)
