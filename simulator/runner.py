"""Runs: planned at the door, played in a nursery of conversations under a limit, graded from their journals."""

from __future__ import annotations

import hashlib
import re
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from math import fsum, inf
from pathlib import Path
from secrets import token_hex
from traceback import format_exception
from typing import Final, NamedTuple, final

import trio

from longspan.simulator import events
from longspan.simulator.agent import Absent, Agent, Prompted, close, has_snapshots, observes, start
from longspan.simulator.agent_spec import AgentSpec, make_agent
from longspan.simulator.conversation import PACE, STARTS_AT, Conversation, Setting, definition, left_out
from longspan.simulator.errors import AgentError, InputError, LongspanError, StoppedError
from longspan.simulator.filler.almanac import Almanac
from longspan.simulator.filler.filler import Filler, Source
from longspan.simulator.filler.trivia import Trivia
from longspan.simulator.grading.grades import Gradebook, Result, grade_run, judge_costs
from longspan.simulator.interop.coherence import check
from longspan.simulator.interop.definitions import Definitions, tests_for, tests_of
from longspan.simulator.journal import Journal, is_closed
from longspan.simulator.judging.background import Judging
from longspan.simulator.judging.judge import LLMJudge, completing
from longspan.simulator.ledger import Ledger, check_priced
from longspan.simulator.manifest import Manifest, Planned, commit, versions
from longspan.simulator.plugins import make_scenario
from longspan.simulator.run_folder import RunFolder
from longspan.simulator.scenario import Test
from longspan.simulator.scoring import Scoring
from longspan.simulator.script import Placement
from longspan.simulator.snapshots import Snapshots
from longspan.simulator.suite import Suite
from longspan.simulator.tokens import EncodingName, Tokenizer
from longspan.simulator.transcript import Change

__all__ = [
    "Heard",
    "Listener",
    "Outcome",
    "Plan",
    "catching_up",
    "check_limit",
    "plan",
    "play",
    "play_on",
    "replan",
    "replay",
    "resume",
    "spent",
]

AT_ONCE: Final = 100
"""Conversations played at once, unless told otherwise."""

GRACE: Final = 10.0
"""Seconds that the turn in hand gets to end when a run is stopped."""


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """A run about to be played: its manifest, the tests of each conversation, and where it will land."""

    manifest: Manifest
    tests: dict[str, list[Test]]
    agent: AgentSpec
    out: Path

    @property
    def name(self) -> str:
        """The folder's name, where it is not taken."""
        manifest = self.manifest
        span = f"-{manifest.span // 1000}k" if manifest.span % 1000 == 0 else f"-{manifest.span}"
        span = "" if manifest.alone else span
        agent = re.sub(r"[^A-Za-z0-9.]+", "-", manifest.agent).strip("-.")[:60] or "agent"
        mode = ("-definitions" if manifest.definitions else "") + ("-isolated" if manifest.isolated else "")
        return f"{manifest.suite.name}{span}{mode}-{agent}-seed{manifest.seed}"


@final
class Heard(NamedTuple):
    """An event of a run that is played: its plan, the folder it lands in, its grades so far, the conversation, the event, and what
    that changed."""

    plan: Plan
    folder: Path
    gradebook: Gradebook
    conversation: str
    event: events.Event
    change: Change


Listener = Callable[[Heard], None]
"""Who is told what happens."""


@final
@dataclass(frozen=True, slots=True)
class Outcome:
    """A run that was played: its folder, its results (None where they cannot be written), and the error that broke it off."""

    folder: Path
    result: Result | None
    error: LongspanError | None


def plan(
    suite: Suite,
    *,
    span: int,
    seed: int,
    agent: str,
    out: Path,
    isolated: bool = False,
    placement: Placement = "uniform",
    tokenizer: EncodingName = "cl100k_base",
    filler: Path | None = None,
    filler_size: int = 2000,
    definitions: Definitions | None = None,
    judge: str | None = None,
    starts_at: datetime = STARTS_AT,
    pace: timedelta = PACE,
) -> Plan:
    """Make a run's tests, or take those of `definitions`, and check all that can be checked before anything is written.

    Raises InputError for what is wrong, also where no test fits into the span.
    """
    spec = AgentSpec.parse(agent)
    make_agent(spec)
    if judge is not None:
        completing(AgentSpec.parse(judge))
    filler = filler.resolve() if filler else None
    suite = suite.counted_in(tokenizer)
    if definitions is not None and placement == "early":
        raise InputError("--placement early places generated tests only: definitions say themselves where their lines go")
    if placement == "early":
        late = [name for name, parameters in suite.scenarios.items() if not make_scenario(name, parameters).early]
    else:
        late = []
    setting = Setting(
        id="all",
        span=span,
        placement=placement,
        isolated=isolated,
        tokenizer=Tokenizer(tokenizer),
        filler=_filler(filler, seed, Tokenizer(tokenizer), filler_size),
    )
    tests: list[Test] = []
    made, dropped = tests_for(suite, seed, span, definitions)
    for test in made:
        why = left_out(test, setting)
        if why is None:
            tests.append(test)
        else:
            dropped.append(why)
    if not tests:
        raise InputError(f"no test of suite {suite.name} fits into a span of {span:,} tokens: {dropped[0]}")
    conversations = {test.id: [test] for test in tests if isolated or test.script.alone}
    if woven := [test for test in tests if test.id not in conversations]:
        conversations = {"main": woven} | conversations
    nonce = token_hex(32)
    manifest = Manifest(
        suite=suite,
        span=span,
        seed=seed,
        agent=str(spec),
        judge=judge,
        placement=placement,
        isolated=isolated,
        tokenizer=tokenizer,
        filler=str(filler) if filler else None,
        filler_sha256=hashlib.sha256(_bytes(filler)).hexdigest() if filler else None,
        filler_size=filler_size,
        definitions=str(definitions.folder) if definitions else None,
        definitions_sha256=definitions.sha256 if definitions else None,
        starts_at=starts_at,
        pace_s=pace.total_seconds(),
        conversations={id: [_planned(test) for test in group] for id, group in conversations.items()},
        left_out=dropped,
        late=late,
        nonce=nonce,
        commitment=commit(nonce, seed, map(definition, tests)),
        versions=versions(),
    )
    return Plan(manifest, conversations, spec, out)


def replan(manifest: Manifest, agent: str, out: Path) -> Plan:
    """The plan of a run that has a manifest, for `agent`. Raises InputError where this longspan makes other tests of it, and for
    a run that was imported: nobody knows what would have come next."""
    if manifest.imported is not None:
        raise InputError(
            f"the run was imported from {manifest.imported.file}: it cannot be gone on with, nor played with another agent; "
            "`longspan run ltm --definitions DIR --agent SPEC` plays its tests"
        )
    made = tests_of(manifest)
    ids = [plan.id for group in manifest.conversations.values() for plan in group]
    if any(id not in made for id in ids):
        raise InputError("the manifest lists tests that its suite does not make: it was changed, or made by another longspan")
    if manifest.filler is not None:
        digest = hashlib.sha256(_bytes(Path(manifest.filler))).hexdigest()
        if digest != manifest.filler_sha256:
            raise InputError(f"filler {manifest.filler}: not the file that the run was made with")
    definitions = (definition(made[id]) for id in ids)
    if commit(manifest.nonce, manifest.seed, definitions) != manifest.commitment:
        raise InputError(
            "the tests made from the manifest are not those it was made with: a scenario, its data or the manifest has changed, "
            f"or the run needs another longspan (it was made with {manifest.versions.get('longspan')})"
        )
    tests = {id: [made[plan.id] for plan in group] for id, group in manifest.conversations.items()}
    return Plan(manifest, tests, AgentSpec.parse(agent), out)


def _planned(test: Test) -> Planned:
    scenario = test.scenario
    chance = scenario.chance(test.script.facts)
    return Planned(id=test.id, scenario=scenario.name, skills=list(scenario.skills), chance=chance, alone=test.script.alone)


def _filler(path: Path | None, seed: int, tokenizer: Tokenizer, size: int) -> Filler:
    source: Source = Trivia(path, seed=seed) if path else Almanac(seed)
    return Filler(source, tokenizer, most=size)


async def play(
    plans: Sequence[Plan],
    *,
    listener: Listener | None = None,
    at_once: int = AT_ONCE,
    signals: bool = False,
    most: float = inf,
) -> list[Outcome]:
    """Play new runs concurrently, at most `at_once` conversations at a time, and grade them.

    Together they spend at most `most` dollars; what would pass that is broken off. Raises InputError for an agent whose
    price is unknown, where there is such a limit.

    A run that is broken off is graded as far as it came; the others go on. With `signals`, Ctrl-C and SIGTERM stop all
    of them after the turn in hand; a second one does not wait for it.
    """
    check_limit(plans, most)
    runs = [RunFolder.create(each.out, each.name, each.manifest) for each in plans]
    return await play_on(list(zip(plans, runs, strict=True)), Ledger(most), listener=listener, at_once=at_once, signals=signals)


async def resume(
    run: RunFolder,
    agent: str,
    *,
    listener: Listener | None = None,
    at_once: int = AT_ONCE,
    signals: bool = False,
    most: float = inf,
) -> Outcome:
    """Go on with a run where its journals end, and grade it. A finished one is only compared with what would be played.

    All in all, with what it has spent already, the run costs at most `most` dollars.

    Raises InputError where another process plays it, or it cannot be planned again.
    """
    each = replan(run.manifest, agent, run.path.parent)
    check_limit([each], most)
    ledger = Ledger(most, spent=spent(run) if most < inf else 0.0)
    return (await play_on([(each, run)], ledger, listener=listener, at_once=at_once, signals=signals))[0]


def check_limit(plans: Sequence[Plan], most: float) -> None:
    """Whether a limit of `most` dollars (inf: none) can be kept. Raises InputError where a price is not known."""
    if most < inf:
        for each in plans:
            check_priced(make_agent(each.agent), str(each.agent))
            if each.manifest.judge is not None:
                check_priced(completing(AgentSpec.parse(each.manifest.judge)), each.manifest.judge)


def spent(run: RunFolder) -> float:
    """Dollars that a run is known to have cost so far, its judge included."""
    used = [entry for transcript in run.transcripts().values() for entry in transcript.used]
    return fsum(cost or 0.0 for _, _, cost in [*used, *judge_costs(run)])


async def catching_up(run: RunFolder, spec: AgentSpec) -> tuple[str, bool]:
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


async def play_on(
    pairs: Sequence[tuple[Plan, RunFolder]],
    ledger: Ledger,
    *,
    listener: Listener | None = None,
    at_once: int = AT_ONCE,
    signals: bool = False,
    stop: trio.Event | None = None,
) -> list[Outcome]:
    """Play runs from where their journals end, new ones from the beginning, and grade them; see `play`. They stop after the
    turn in hand once `stop` is set.

    Raises InputError where another process plays one of them.
    """
    stage = _Playing(trio.CapacityLimiter(at_once), listener, ledger)
    outcomes: dict[Path, Outcome] = {}

    async def one(each: Plan, run: RunFolder) -> None:
        scoring = Scoring(run)
        error = await stage.run(each, run, scoring)
        try:
            outcomes[run.path] = Outcome(run.path, scoring.write(), error)
        except LongspanError as failure:
            outcomes[run.path] = Outcome(run.path, None, error or failure)

    with ExitStack() as locks:
        for _, run in pairs:
            locks.enter_context(run.lock())
        async with trio.open_nursery() as nursery:
            if signals:
                await nursery.start(stage.obey)
            if stop is not None:
                nursery.start_soon(stage.stop_at, stop)
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
            scope.deadline = trio.current_time() + GRACE

    async def run(self, each: Plan, run: RunFolder, scoring: Scoring) -> LongspanError | None:
        """Play all of a run's conversations. Returns the first error that broke one off."""
        errors: list[LongspanError] = []
        judge = LLMJudge(each.manifest.judge, run, self._ledger) if each.manifest.judge is not None else None

        async def one(id: str) -> None:
            async with self._limit:
                try:
                    if judge is None:
                        await self._converse(each, run, id, scoring, None)
                    else:
                        async with Judging(judge, scoring.gradebook) as judging:
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

        def heard(event: events.Event) -> None:
            change = scoring.add(id, event)
            if judging is not None:
                judging.heard(id, change)
            if self._listener is not None:
                self._listener(Heard(each, run.path, scoring.gradebook, id, event, change))

        with Journal(run.journal(id)) as journal, trio.CancelScope() as scope:
            conversation = Conversation(
                setting_of(each.manifest, id),
                each.tests[id],
                agent,
                journal,
                snapshots=Snapshots(run.snapshots(id)),
                judge=judging.judge if judging is not None else None,
                ledger=self._ledger,
                whisper=_whisper(each.agent, agent),
                listener=heard,
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


def setting_of(manifest: Manifest, conversation: str) -> Setting:
    """What a conversation of a run is played with."""
    tokenizer = Tokenizer(manifest.tokenizer)
    return Setting(
        id=conversation,
        span=manifest.span,
        placement=manifest.placement,
        isolated=manifest.isolated,
        alone=any(planned.alone for planned in manifest.conversations[conversation]),
        tokenizer=tokenizer,
        filler=_filler(Path(manifest.filler) if manifest.filler else None, manifest.seed, tokenizer, manifest.filler_size),
        starts_at=manifest.starts_at,
        pace=timedelta(seconds=manifest.pace_s),
    )


def _whisper(spec: AgentSpec, agent: Agent) -> Callable[[str], None] | None:
    """The channel of ideal replies: the kind `oracle` has one, and no other kind of agent."""
    return agent.prompt if spec.kind == "oracle" and isinstance(agent, Prompted) else None


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


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
            await Conversation(setting_of(each.manifest, id), tests, Absent(), journal, listener=partial(gradebook.add, id)).play()
    return gradebook.result(run)
