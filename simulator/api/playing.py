"""Plays runs for a program: from plain code, under asyncio (in a notebook, for example) and under Trio.

Under Trio, runs are played in the task that awaits them. Otherwise, Trio gets a thread of its own.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any, Final, TypeVar, final

import trio
from pydantic import ValidationError

from longspan.simulator.api.agents import Agents, AnyAgent, agents_of, one_by_one
from longspan.simulator.api.results import Results, load
from longspan.simulator.api.watching import Watcher, watcher
from longspan.simulator.archive.run_folder import RunFolder
from longspan.simulator.base.errors import InputError, LongspanError, first_problem
from longspan.simulator.base.sizes import is_size
from longspan.simulator.base.suggestions import meant
from longspan.simulator.base.terminal import complain
from longspan.simulator.report import Report
from longspan.simulator.running.planning import Plan, plan, repetitions, replan
from longspan.simulator.running.player import Listener, Outcome
from longspan.simulator.running.runner import check_limit, play_runs, spent_so_far
from longspan.simulator.subject.in_memory_agents import KIND, Given, holding
from longspan.simulator.subject.ledger import Ledger
from longspan.simulator.subject.replies import keeping
from longspan.simulator.subject.spending_limit import UNLIMITED, Amount, limit_of
from longspan.simulator.suite.agent_spec import AgentSpec
from longspan.simulator.suite.grid import Grid
from longspan.simulator.suite.suite import load_suite
from longspan.simulator.suite.trust import admit, admit_file

__all__ = ["planned", "resume", "run", "run_async", "run_if"]

T = TypeVar("T")

REFRESH: Final = 0.5
"""How many seconds to wait between two updates of the progress display."""

OURS: Final = {"suites": "suite", "spans": "span", "agents": "agent", "seeds": "seeds"}
"""The names of our parameters, by the field of a Grid that each sets."""

Spans = int | str | Iterable[int | str] | None


def run(
    suite: str | Path = "ltm",
    *,
    agent: Agents,
    span: Spans = None,
    seeds: int | str | Iterable[int] = 0,
    out: str | Path = "runs",
    max_cost: float | None = None,
    max_tokens: float | None = None,
    replies: str | Path | None = None,
    progress: bool | None = None,
    trust: bool = False,
    **settings: Any,
) -> Results:
    """Play a suite against an agent and grade it: a run for each combination of spans, agents and seeds, all at the same time.

    `suite`: a name, a YAML file, or A+B; `span`: tokens, such as "32k", by default the suite's; "ltm@32k" is both. `agent`: a spec, an
    object with a method `reply`, a class of such objects, a function `str -> str`, or a function without arguments that makes any of these,
    sync or async; several in a list, or with names in a dict. `out`: the folder for the runs' folders. `max_cost` and `max_tokens`: the
    most that all runs together may spend, in dollars and in tokens. `replies`: a file where models' replies are looked up and kept.
    `progress`: whether to show it, by default on a terminal and in a notebook. `trust`: allow code that a suite's file names. `settings`:
    as in a sweep's file, such as `tests` or `judge`.

    Raises InputError before anything is written. Raises AgentError or StoppedError if a run was interrupted: finished turns are kept, and
    `resume` continues the run. Ctrl-C stops the runs after their current turns, and a second Ctrl-C at once; both raise KeyboardInterrupt.
    """
    return _results(_wait_for(_job(suite, agent, span, seeds, out, max_cost, max_tokens, replies, progress, trust, settings)))


def run_if(
    fits: Callable[[Plan], None],
    suite: str | Path,
    *,
    agent: Agents,
    span: Spans = None,
    seeds: int | str | Iterable[int] = 0,
    out: str | Path = "runs",
    max_cost: float | None = None,
    max_tokens: float | None = None,
    replies: str | Path | None = None,
    progress: bool | None = None,
    trust: bool = False,
    **settings: Any,
) -> Results:
    """Do as `run` does if `fits` raises nothing for any of the plans."""
    job = _job(suite, agent, span, seeds, out, max_cost, max_tokens, replies, progress, trust, settings)
    job.fits = fits
    return _results(_wait_for(job))


async def run_async(
    suite: str | Path = "ltm",
    *,
    agent: Agents,
    span: Spans = None,
    seeds: int | str | Iterable[int] = 0,
    out: str | Path = "runs",
    max_cost: float | None = None,
    max_tokens: float | None = None,
    replies: str | Path | None = None,
    progress: bool | None = None,
    trust: bool = False,
    **settings: Any,
) -> Results:
    """Like `run`, but awaited under asyncio or Trio; several may be awaited at once. If it is cancelled, the runs are stopped and kept.

    An async function or object is awaited in your own loop.
    """
    job = _job(suite, agent, span, seeds, out, max_cost, max_tokens, replies, progress, trust, settings)
    if trio.lowlevel.in_trio_run():
        job.given = {name: replace(each, under_trio=True) for name, each in job.given.items()}
        return _results(await job.play(_Brake()))
    job.given = {name: replace(each, loop=asyncio.get_running_loop()) for name, each in job.given.items()}
    outcomes = await _await_for(job)
    return await asyncio.to_thread(_results, outcomes)


def resume(
    folder: str | Path,
    *,
    agent: AnyAgent = None,
    replies: str | Path | None = None,
    progress: bool | None = None,
    trust: bool = False,
) -> Results:
    """Continue an interrupted run exactly where it stopped. `agent`: as for `run`; it must be given again if it was an object."""
    run = RunFolder(Path(folder))
    named = AgentSpec.parse(run.manifest.agent)
    if agent is None and named.kind == KIND:
        raise InputError(f"{run.path}: {named} was an object of a Python program: give it again, by agent=...")
    again = str(named) if agent is None else {named.target: agent} if named.kind == KIND else agent
    specs, given = agents_of(again)
    admit(run.path, run.manifest, trust=trust, given=[specs[0]] if agent is not None else [])
    job = _Resumption(run, specs[0], given, watcher(progress))
    job.replies = Path(replies) if replies is not None else None
    return _results(_wait_for(job))


def planned(
    suite: str | Path,
    *,
    agent: Agents,
    span: Spans = None,
    seeds: int | str | Iterable[int] = 0,
    replies: str | Path | None = None,
    **settings: Any,
) -> list[Plan]:
    """Return the plans that `run` would play, without playing them. Raises InputError."""
    job = _job(suite, agent, span, seeds, "runs", None, None, replies, False, False, settings)
    with holding(job.given), keeping(job.replies):
        return job.plans()


# ---- the runs to play


@final
class _Brake:
    """Stops runs from another thread: after their current turns, or at once."""

    def __init__(self) -> None:
        self.stop = trio.Event()
        self.scope = trio.CancelScope()
        self._token: trio.lowlevel.TrioToken | None = None
        self._pulled = False

    def fit(self) -> None:
        """Stop runs that are played in this Trio loop from now on, or at once if the brake has been pulled already."""
        self._token = trio.lowlevel.current_trio_token()
        if self._pulled:
            self.scope.cancel()

    def pull(self, *, at_once: bool = False) -> None:
        """Stop the runs. Does nothing if they have ended."""
        self._pulled = True
        if self._token is not None:
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self.scope.cancel if at_once else self.stop.set)


class _Job:
    """Runs to be played, with the agents given for them."""

    new = False
    """Whether `prepared` makes the runs' folders."""

    def __init__(self, given: Mapping[str, Given], shown: Watcher | None) -> None:
        self.given = dict(given)
        self.shown = shown
        self.replies: Path | None = None

    def prepared(self) -> tuple[list[tuple[Plan, RunFolder]], Ledger]:
        """Plan the runs, and create the folders of new ones. Raises InputError."""
        raise NotImplementedError

    async def play(self, brake: _Brake) -> list[Outcome]:
        """Play the runs under Trio. Raises LongspanError."""
        brake.fit()
        outcomes: list[Outcome] = []
        try:
            with holding(self.given), keeping(self.replies), brake.scope:
                pairs, ledger = await trio.to_thread.run_sync(self.prepared)
                listener: Listener | None = None
                if self.shown is not None:
                    self.shown.begin([plan for plan, _ in pairs])
                    listener = self.shown.heard
                try:
                    outcomes = await play_runs(pairs, ledger, listener=listener, pages=Report, stop=brake.stop, new=self.new)
                finally:
                    if self.shown is not None:
                        self.shown.end()
        except BaseExceptionGroup as group:
            raise _cause(group) from None
        return outcomes


@final
class _New(_Job):
    """New runs."""

    new = True

    def __init__(self, grid: Grid, out: Path, limit: Amount, given: Mapping[str, Given], shown: Watcher | None) -> None:
        super().__init__(given, shown)
        self._grid, self._out, self._limit = grid, out, limit
        self.fits: Callable[[Plan], None] = lambda plan: None
        """Raises InputError for a plan that is not to be played."""

    def plans(self) -> list[Plan]:
        """Plan the runs. Raises InputError."""
        return one_by_one([plan(settings, self._out) for settings in self._grid.runs()], self.given)

    def prepared(self) -> tuple[list[tuple[Plan, RunFolder]], Ledger]:
        plans = self.plans()
        for each in plans:
            self.fits(each)
        check_limit(plans, self._limit)
        for note in repetitions(plans) if self.shown is not None else ():
            complain(note)
        return [(each, RunFolder.create(each.out, each.name, each.manifest)) for each in plans], Ledger(self._limit)


@final
class _Resumption(_Job):
    """A run that was interrupted."""

    def __init__(self, run: RunFolder, agent: str, given: Mapping[str, Given], shown: Watcher | None) -> None:
        super().__init__(given, shown)
        self._run, self._agent = run, agent

    def prepared(self) -> tuple[list[tuple[Plan, RunFolder]], Ledger]:
        plans = one_by_one([replan(self._run.manifest, self._agent, self._run.path.parent)], self.given)
        return [(plans[0], self._run)], Ledger(UNLIMITED, *spent_so_far([self._run]))


def _job(
    suite: str | Path,
    agent: Agents,
    span: Spans,
    seeds: int | str | Iterable[int],
    out: str | Path,
    max_cost: float | None,
    max_tokens: float | None,
    replies: str | Path | None,
    progress: bool | None,
    trust: bool,
    settings: Mapping[str, Any],
) -> _New:
    """Return the requested runs. Raises InputError."""
    name, at, ending = str(suite).rpartition("@")
    if at and is_size(ending):
        if span is not None:
            raise InputError(f"{suite}: the span is given twice; leave out span=")
        suite, span = name, ending
    specs, given = agents_of(agent)
    known = [name for name in Grid.model_fields if name not in OURS]
    for name in settings:
        if name not in known:
            near = meant(name, [*signature(run).parameters, *known], f"its settings are {', '.join(known)}")
            raise InputError(f"longspan.run takes no {name!r:.60}{near}")
    scenarios = settings.get("scenarios") or []
    admit_file(suite, load_suite(str(suite)).scenarios, [scenarios] if isinstance(scenarios, str) else scenarios, trust=trust)
    chosen = {"suites": str(suite), "agents": specs, "seeds": _listed(seeds), "spans": [] if span is None else _listed(span)}
    try:
        grid = Grid.model_validate(chosen | {name: _pairs(value) for name, value in settings.items()})
    except ValidationError as error:
        place, rest = first_problem(error), ""
        for field, ours in OURS.items():
            if place.startswith(field):
                place, rest = ours, place[len(field) :]
        raise InputError(f"{place}{rest}") from None
    job = _New(grid, Path(out), limit_of(max_cost, max_tokens), given, watcher(progress))
    job.replies = Path(replies) if replies is not None else None
    return job


def _pairs(value: Any) -> Any:
    """Return a dict, such as {"questions": 5}, as the list of NAME=VALUE that the command line takes; anything else as it is."""
    if not isinstance(value, Mapping):
        return value
    return [f"{name}={each if isinstance(each, str | Path) else json.dumps(each)}" for name, each in value.items()]


def _listed(values: Any) -> list[Any]:
    return list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [values]


# ---- waiting for runs


def _started(job: _Job, brake: _Brake) -> Future[list[Outcome]]:
    """Begin to play runs in a thread of their own."""
    done: Future[list[Outcome]] = Future()
    context = copy_context()

    def played() -> None:
        try:
            outcomes = context.run(trio.run, job.play, brake)
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(outcomes)

    threading.Thread(target=played, name="longspan", daemon=True).start()
    return done


def _wait_for(job: _Job) -> list[Outcome]:
    """Play runs, and block until they have ended."""
    if trio.lowlevel.in_trio_run():
        raise InputError("longspan.run blocks, and this is Trio's thread: write `await longspan.run_async(...)`")
    brake = _Brake()
    done = _started(job, brake)
    interrupts = 0
    while not done.done():
        try:
            wait([done], REFRESH)
            if job.shown is not None:
                job.shown.refresh()
        except KeyboardInterrupt:
            interrupts += 1
            brake.pull(at_once=interrupts > 1)
            if interrupts == 1:
                complain("stopping after the current turn; interrupt again to stop at once")
    outcomes = done.result()
    if interrupts:
        kept = [outcome for outcome in outcomes if outcome.kept]
        raise KeyboardInterrupt(f"the runs are kept: {_named(kept)}") if kept else KeyboardInterrupt
    return outcomes


async def _await_for(job: _Job) -> list[Outcome]:
    """Play runs while asyncio continues."""
    brake = _Brake()
    done = asyncio.wrap_future(_started(job, brake))
    try:
        while not done.done():
            await asyncio.wait([done], timeout=REFRESH)
            if job.shown is not None:
                job.shown.refresh()
    except asyncio.CancelledError:
        brake.pull(at_once=True)
        while not done.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([done])
        raise
    return done.result()


def _results(outcomes: Sequence[Outcome]) -> Results:
    """Return the results of runs. Raises the first error that interrupted one."""
    for outcome in outcomes:
        if outcome.error is not None:
            if outcome.kept:
                outcome.error.add_note(f"what was played is kept; longspan.resume({str(outcome.folder)!r}) continues it")
            raise outcome.error
    return load(*(outcome.folder for outcome in outcomes))


def _named(outcomes: Sequence[Outcome]) -> str:
    return ", ".join(str(outcome.folder) for outcome in outcomes)


def _cause(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return longspan's error in a group, or else the group itself."""
    found: BaseException | None = group.subgroup(LongspanError)
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found or group
