"""Plays runs for a program: from synchronous code, under asyncio (for example in a notebook) and under Trio.

Under Trio, the task that awaits the runs plays them. Otherwise, a new thread runs Trio.
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
from longspan.simulator.api.parameters import name_parameters
from longspan.simulator.api.results import Results, load
from longspan.simulator.api.watching import Watcher, make_watcher
from longspan.simulator.base.errors import InputError, LongspanError, first_problem
from longspan.simulator.base.sizes import is_size
from longspan.simulator.base.suggestions import suggest
from longspan.simulator.base.terminal import complain
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report import Report
from longspan.simulator.running.planning import Plan, describe_repetitions, plan_run, replan_run
from longspan.simulator.running.player import Listener, Outcome
from longspan.simulator.running.prepared_agents import PreparedAgents
from longspan.simulator.running.runner import check_limit, play_runs, sum_spending
from longspan.simulator.subject.in_memory_agents import KIND, GivenObject, register_agents
from longspan.simulator.subject.ledger import Ledger
from longspan.simulator.subject.replies import keep_replies
from longspan.simulator.subject.spending_limit import UNLIMITED, Amount, limit_of
from longspan.simulator.suite.agent_spec import AgentSpec
from longspan.simulator.suite.grid import Grid
from longspan.simulator.suite.suite import load_suite
from longspan.simulator.suite.trust import admit_file, admit_manifest

__all__ = ["plan_runs", "resume", "run", "run_async", "run_if"]

T = TypeVar("T")

REFRESH: Final = 0.5
"""Seconds between two updates of the progress display."""

OURS: Final = {"suites": "suite", "spans": "span", "agents": "agent", "seeds": "seeds"}
"""The names of `run`'s parameters, by the field of a Grid that each one sets."""

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
    """Play a suite against an agent and grade it. Spans, agents and seeds make one run for each combination; all runs play concurrently.

    `suite`: a name, a YAML file, or A+B. `span`: tokens, such as "32k", by default the suite's; "ltm@32k" is both. `agent`: a spec, an
    object with a method `reply`, a class of such objects, a function `str -> str`, or a factory for any of these, sync or async. Pass
    several as a list, or as a dict with names. `out`: the folder for the runs' folders. `max_cost` and `max_tokens`: the most dollars and
    tokens that all runs together may spend. `replies`: a file that caches models' replies. `progress`: whether to show progress, by default
    on a terminal and in a notebook. `trust`: allow code that the suite's file names. `settings`: as in a sweep's file, such as `tests` or
    `judge`.

    Raises InputError before anything is written. Raises AgentError or StoppedError if a run was interrupted; finished turns are saved, and
    `resume` continues the run. Ctrl-C stops the runs after their current turns, and a second Ctrl-C stops them immediately. Both raise
    KeyboardInterrupt.
    """
    with name_parameters():
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
    """Do the same as `run`, after calling `fits` with each plan. An error that `fits` raises prevents all runs."""
    with name_parameters():
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
    """Do the same as `run`, but awaitable under asyncio or Trio. Several calls may run concurrently.

    An async function or object is awaited in the caller's loop. Cancelling the call stops the runs; finished turns are saved.
    """
    with name_parameters():
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
    """Continue an interrupted run exactly where it stopped. `agent` is as for `run`. If it was an object, pass it again."""
    run = RunFolder(Path(folder))
    named = AgentSpec.parse(run.manifest.agent)
    if agent is None and named.kind == KIND:
        raise InputError(f"{run.path}: {named} was an object of a Python program; pass it again as agent=...")
    again = str(named) if agent is None else {named.target: agent} if named.kind == KIND else agent
    specs, given = agents_of(again)
    admit_manifest(run.path, run.manifest, trust=trust, given=[specs[0]] if agent is not None else [])
    job = _Resumption(run, specs[0], given, make_watcher(progress))
    job.replies = Path(replies) if replies is not None else None
    return _results(_wait_for(job))


def plan_runs(
    suite: str | Path,
    *,
    agent: Agents,
    span: Spans = None,
    seeds: int | str | Iterable[int] = 0,
    replies: str | Path | None = None,
    **settings: Any,
) -> list[Plan]:
    """Return the plans that `run` would play, without playing them. Raises InputError."""
    with name_parameters():
        job = _job(suite, agent, span, seeds, "runs", None, None, replies, False, False, settings)
        with register_agents(job.given), keep_replies(job.replies), job.agents:
            return job.plans()


# ---- the runs to play


@final
class _Brake:
    """Stops runs from another thread, either after their current turns or immediately."""

    def __init__(self) -> None:
        self.stop = trio.Event()
        self.scope = trio.CancelScope()
        self._token: trio.lowlevel.TrioToken | None = None
        self._pulled = False

    def fit(self) -> None:
        """Attach the brake to the runs in this Trio loop. If it has been pulled already, stop them now."""
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
    """A set of runs to play, with the agent objects passed for them."""

    new = False
    """Whether `prepare` creates the runs' folders."""

    def __init__(self, given: Mapping[str, GivenObject], shown: Watcher | None) -> None:
        self.given = dict(given)
        self.shown = shown
        self.replies: Path | None = None
        self.agents = PreparedAgents()

    def prepare(self) -> tuple[list[tuple[Plan, RunFolder]], Ledger]:
        """Return the runs' plans and folders, and the ledger that they share. Raises InputError."""
        raise NotImplementedError

    async def play(self, brake: _Brake) -> list[Outcome]:
        """Play the runs under Trio. Raises LongspanError."""
        brake.fit()
        outcomes: list[Outcome] = []
        try:
            with register_agents(self.given), keep_replies(self.replies), self.agents, brake.scope:
                pairs, ledger = await trio.to_thread.run_sync(self.prepare)
                listener: Listener | None = None
                if self.shown is not None:
                    self.shown.begin([plan for plan, _ in pairs])
                    listener = self.shown.take_event
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
    """New runs, from a grid of settings."""

    new = True

    def __init__(self, grid: Grid, out: Path, limit: Amount, given: Mapping[str, GivenObject], shown: Watcher | None) -> None:
        super().__init__(given, shown)
        self._grid, self._out, self._limit = grid, out, limit
        self.fits: Callable[[Plan], None] = lambda plan: None
        """Raises InputError for a plan that must not be played."""

    def plans(self) -> list[Plan]:
        """Plan the runs. Raises InputError."""
        return one_by_one([plan_run(settings, self._out, self.agents) for settings in self._grid.runs()], self.given)

    def prepare(self) -> tuple[list[tuple[Plan, RunFolder]], Ledger]:
        plans = self.plans()
        for each in plans:
            self.fits(each)
        check_limit(plans, self._limit)
        for note in describe_repetitions(plans) if self.shown is not None else ():
            complain(note)
        return [(each, RunFolder.create(each.out, each.name, each.manifest)) for each in plans], Ledger(self._limit)


@final
class _Resumption(_Job):
    """An interrupted run to continue."""

    def __init__(self, run: RunFolder, agent: str, given: Mapping[str, GivenObject], shown: Watcher | None) -> None:
        super().__init__(given, shown)
        self._run, self._agent = run, agent

    def prepare(self) -> tuple[list[tuple[Plan, RunFolder]], Ledger]:
        plans = one_by_one([replan_run(self._run.manifest, self._agent, self._run.path.parent)], self.given)
        return [(plans[0], self._run)], Ledger(UNLIMITED, *sum_spending([self._run]))


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
    """Return the job for the parameters of `run`. Raises InputError."""
    name, at, ending = str(suite).rpartition("@")
    if at and is_size(ending):
        if span is not None:
            raise InputError(f"{suite}: the span is given twice: omit span=")
        suite, span = name, ending
    specs, given = agents_of(agent)
    known = [name for name in Grid.model_fields if name not in OURS]
    for name in settings:
        if name not in known:
            near = suggest(name, [*signature(run).parameters, *known], f"its settings are {', '.join(known)}")
            raise InputError(f"longspan.run takes no {name!r:.60}{near}")
    scenarios = settings.get("scenarios") or []
    admit_file(suite, load_suite(str(suite)).scenarios, [scenarios] if isinstance(scenarios, str) else scenarios, trust=trust)
    chosen = {"suites": str(suite), "agents": specs, "seeds": _as_list(seeds), "spans": [] if span is None else _as_list(span)}
    try:
        grid = Grid.model_validate(chosen | {name: _pairs(value) for name, value in settings.items()})
    except ValidationError as error:
        place, rest = first_problem(error), ""
        for field, ours in OURS.items():
            if place.startswith(field):
                place, rest = ours, place[len(field) :]
        raise InputError(f"{place}{rest}") from None
    job = _New(grid, Path(out), limit_of(max_cost, max_tokens), given, make_watcher(progress))
    job.replies = Path(replies) if replies is not None else None
    return job


def _pairs(value: Any) -> Any:
    """Return a dict, such as {"questions": 5}, as the list of NAME=VALUE that the command line takes. Return other values unchanged."""
    if not isinstance(value, Mapping):
        return value
    return [f"{name}={each if isinstance(each, str | Path) else json.dumps(each)}" for name, each in value.items()]


def _as_list(values: Any) -> list[Any]:
    return list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [values]


# ---- waiting for runs


def _start_playing(job: _Job, brake: _Brake) -> Future[list[Outcome]]:
    """Start a thread that plays the runs. Return the future of their outcomes."""
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
    done = _start_playing(job, brake)
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
                complain("stopping after the current turn; interrupt again to stop immediately")
    outcomes = done.result()
    if interrupts:
        kept = [outcome for outcome in outcomes if outcome.kept]
        raise KeyboardInterrupt(f"the runs are kept: {_name_folders(kept)}") if kept else KeyboardInterrupt
    return outcomes


async def _await_for(job: _Job) -> list[Outcome]:
    """Play runs while asyncio's loop continues."""
    brake = _Brake()
    done = asyncio.wrap_future(_start_playing(job, brake))
    try:
        while not done.done():
            await asyncio.wait([done], timeout=REFRESH)
            if job.shown is not None:
                job.shown.refresh()
    except asyncio.CancelledError:
        brake.pull(at_once=True)
        # A second cancellation must not abandon the thread: it still writes to the runs' folders.
        while not done.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([done])
        raise
    return done.result()


def _results(outcomes: Sequence[Outcome]) -> Results:
    """Return the results of runs. Raises the first error that interrupted one of them."""
    for outcome in outcomes:
        if outcome.error is not None:
            if outcome.kept:
                outcome.error.add_note(f"finished turns are saved; longspan.resume({str(outcome.folder)!r}) continues the run")
            raise outcome.error
    return load(*(outcome.folder for outcome in outcomes))


def _name_folders(outcomes: Sequence[Outcome]) -> str:
    return ", ".join(str(outcome.folder) for outcome in outcomes)


def _cause(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first LongspanError in a group. Without one, return the group itself."""
    found: BaseException | None = group.subgroup(LongspanError)
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found or group
