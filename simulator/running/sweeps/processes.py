"""Runs played by several worker processes, one run at a time each: for agents that compute locally.

A worker reads its runs from its standard input, one JSON object a line. It writes every event and the outcome of each run to its standard
output. There it also asks its parent, which keeps the ledger for all, to reserve the cost of each call. If its input ends during a run, its
parent has exited, so the worker exits immediately; journals survive this. If it ends between runs, the worker first cleans up after its
agents.
"""

from __future__ import annotations

import itertools
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import astuple
from functools import partial
from math import inf
from pathlib import Path
from subprocess import PIPE
from typing import IO, Any, Final, cast, final

import outcome
import trio

from longspan.simulator.base.closing import end_all, report_failure, take_failures
from longspan.simulator.base.errors import AgentError, InputError, JournalError, LongspanError, StoppedError
from longspan.simulator.base.hard_exit import end_process, report_crashes
from longspan.simulator.base.process_shares import PROCESSES
from longspan.simulator.base.terminal import prepare_streams
from longspan.simulator.journal import events
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.gradebook.gradebook import Gradebook
from longspan.simulator.results.gradebook.worker import GradingWorker
from longspan.simulator.results.result import Result, read_result
from longspan.simulator.running.planning import Plan, replan_run
from longspan.simulator.running.player import Listener, Outcome, RunEvent
from longspan.simulator.running.runner import play_runs, stop_after
from longspan.simulator.running.scoring import Page, Pages
from longspan.simulator.running.sweeps.sweep import finished_result
from longspan.simulator.subject.ledger import Account, Ledger, UnpricedCall, Worst
from longspan.simulator.subject.shared_limits import SharedLedger
from longspan.simulator.subject.spending_limit import UNLIMITED, Amount
from longspan.simulator.subject.telemetry import TELEMETRY
from longspan.simulator.subject.tracing import export_traces
from longspan.simulator.suite.manifest import Manifest
from longspan.simulator.suite.trust import vouch_for

__all__ = ["main", "play_in_processes", "result_of"]

UNCLOSED: Final = 75
"""The exit code of a worker that has played its runs, but could not close an agent."""

# The parent process.


@final
class _WorkerExitedError(Exception):
    """A worker exited before its run had ended."""


async def play_in_processes(
    pairs: Sequence[tuple[Plan, RunFolder]],
    jobs: int,
    *,
    lock: int,
    ledger: Ledger,
    listener: Listener | None = None,
    pages: type[Page] | None = None,
    seconds: float = inf,
) -> list[Outcome]:
    """Play runs from where their journals end, in `jobs` processes, and grade them. If a process dies, only its current run fails.

    All workers inherit the file descriptor `lock`, so that it stays locked until the last of them has exited. All pay from `ledger`.
    SIGINT, SIGTERM, SIGHUP and the end of `seconds` of real time stop them as they stop `play`. Workers import `pages` by name.
    """
    dispatcher = _Dispatcher(list(pairs), listener, pages, ledger)
    async with trio.open_nursery() as nursery:
        await nursery.start(dispatcher.forward_signals)
        if seconds < inf:
            nursery.start_soon(stop_after, seconds, dispatcher.stop)
        async with trio.open_nursery() as workers:
            for _ in range(jobs):
                workers.start_soon(dispatcher.run_worker, jobs, lock)
        nursery.cancel_scope.cancel()
    return [dispatcher.outcomes[run.path] for _, run in pairs]


@final
class _Dispatcher:
    """Hands out runs to workers and collects their outcomes."""

    def __init__(self, pairs: list[tuple[Plan, RunFolder]], listener: Listener | None, pages: type[Page] | None, ledger: Ledger) -> None:
        self.outcomes: dict[Path, Outcome] = {}
        self._ledger = ledger
        self._left = pairs[::-1]
        self._listener = listener
        self._pages = pages
        self._processes: set[trio.Process] = set()
        self._workers: set[GradingWorker] = set()
        self._stopped = False

    async def forward_signals(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Forward signals to the workers, because each has its own session."""
        hangup = [signal.SIGHUP] if hasattr(signal, "SIGHUP") else []
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, *hangup) as received:
            task_status.started()
            async for _ in received:
                self.stop()

    def stop(self) -> None:
        """Stop the workers as on a signal."""
        self._stopped = True
        for worker in self._workers:
            worker.hurry()
        for process in self._processes:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)

    async def run_worker(self, jobs: int, lock: int) -> None:
        """Have a worker play one run after another. Start another worker if it dies."""
        while self._left:
            # Its own sys.path, not PYTHONPATH: that would reach the interpreters of agents.
            code = f"import sys; sys.path[:] = {sys.path}; from longspan.simulator.running.sweeps.processes import main"
            if self._pages is not None:
                code += f"; from {self._pages.__module__} import {self._pages.__name__} as pages; main(pages)"
            else:
                code += "; main(None)"
            environment = os.environ | {PROCESSES: str(jobs)}
            process = await trio.lowlevel.open_process(
                [sys.executable, "-c", code], stdin=PIPE, stdout=PIPE, env=environment, pass_fds=(lock,), start_new_session=True
            )
            self._processes.add(process)
            try:
                await self._serve(process)
            finally:
                self._processes.discard(process)
                with trio.CancelScope(shield=True):
                    await _input(process).aclose()
                    if await process.wait() == UNCLOSED:
                        report_failure("a worker process could not close an agent; its message is above")

    async def _serve(self, process: trio.Process) -> None:
        """Hand runs to one worker until none are left or it dies."""
        lines = _Lines(cast(trio.abc.ReceiveStream, process.stdout))
        while self._left:
            plan, run = self._left.pop()
            if self._stopped:
                self.outcomes[run.path] = Outcome(run.path, finished_result(run), StoppedError("stopped before its first turn"))
                continue
            try:
                telemetry = TELEMETRY.get()
                order: dict[str, Any] = {"run": str(run.path), "manifest": plan.manifest.model_dump_json()}
                order |= {"limit": astuple(self._ledger.limit), "otel": telemetry is not None}
                await _input(process).send_all(_line(order))
                lender = _Lender(self._ledger, _input(process))
                answer = await lender.lend(partial(self._listen, plan, run, lines, lender))
            except (_WorkerExitedError, trio.BrokenResourceError):
                code = await process.wait()
                error = AgentError(f"the process that played {run.path.name} ended with {_exit_text(code)}")
                run.incident(conversation="", type="interrupted", error=str(error))
                self.outcomes[run.path] = Outcome(run.path, None, StoppedError(str(error)) if self._stopped else error)
                return
            if telemetry is not None:
                telemetry.add(*answer["spans"])
            self.outcomes[run.path] = Outcome(run.path, result_of(run), _error(answer))

    async def _listen(self, plan: Plan, run: RunFolder, lines: _Lines, lender: _Lender) -> dict[str, Any]:
        """Pass a run's events to the listener until the worker reports the outcome."""
        gradebook = Gradebook(plan.manifest)
        worker = GradingWorker(gradebook)
        self._workers.add(worker)
        while True:
            message: dict[str, Any] = json.loads(await lines.next())
            if lender.takes(message):
                continue
            if "event" not in message:
                return message
            if self._listener is not None:
                id, event = message["conversation"], events.parse_event(message["event"])
                change = gradebook.add(id, event)
                await worker.on_change(id, change)
                self._listener(RunEvent(plan, run.path, gradebook, id, event, change))


@final
class _Lender:
    """Reserves in a ledger the cost of calls in a worker's run, until the worker reports the actual cost or the run has ended."""

    def __init__(self, ledger: Ledger, stream: trio.abc.SendStream) -> None:
        self._ledger = ledger
        self._stream = stream
        self._sending = trio.Lock()
        self._lent: dict[int, tuple[trio.Event, list[Amount], Account]] = {}

    async def lend(self, listen: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """Return the result of `listen`, which passes all messages to `takes`."""
        async with trio.open_nursery() as self._nursery:
            heard = await outcome.acapture(listen)  # so that its errors are not raised in a group
            self._nursery.cancel_scope.cancel()
        return heard.unwrap()

    def takes(self, message: dict[str, Any]) -> bool:
        """Handle a message if it is for the ledger. Return whether it was."""
        if "reserve" in message:
            worst = UnpricedCall(*message["call"]) if "call" in message else Amount(*message["worst"])
            self._nursery.start_soon(self._pay, message["reserve"], worst)
        elif "release" in message:
            done, amounts, _ = self._lent.pop(message["release"])
            amounts += [] if message["amount"] is None else [Amount(*message["amount"])]
            done.set()
        elif "draw" in message:
            _, _, account = self._lent.get(message["for"], (None, None, None))
            problem = self._ledger.grow(account, Amount(*message["more"]))
            self._nursery.start_soon(self._answer, {"draw": message["draw"], "problem": problem})
        elif "spend" in message:
            self._ledger.count(Amount(*message["spend"]))
        return not message.keys().isdisjoint(("reserve", "release", "draw", "spend"))

    async def _pay(self, ticket: int, worst: Worst) -> None:
        try:
            async with self._ledger.open_account(None, worst) as account:
                done, amounts, _ = self._lent[ticket] = trio.Event(), list[Amount](), account
                await self._answer({"ticket": ticket, "problem": None, "reserved": astuple(account.reserved)})
                await done.wait()
                account.amount = amounts[0] if amounts else None
        except StoppedError as stopped:
            await self._answer({"ticket": ticket, "problem": str(stopped)})

    async def _answer(self, answer: dict[str, Any]) -> None:
        async with self._sending:
            with suppress(trio.BrokenResourceError):  # the worker has exited, which its output shows
                await self._stream.send_all(_line(answer))


@final
class _Lines:
    """The lines of a stream."""

    def __init__(self, stream: trio.abc.ReceiveStream) -> None:
        self._stream = stream
        self._rest = bytearray()

    async def next(self) -> bytes:
        """Return the next line. Raise _WorkerExitedError if the stream ends before the line does."""
        start = 0
        while (end := self._rest.find(b"\n", start)) < 0:
            start = len(self._rest)
            more = await self._stream.receive_some()
            if not more:
                raise _WorkerExitedError
            self._rest += more
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        return line


def _input(process: trio.Process) -> trio.abc.SendStream:
    return cast(trio.abc.SendStream, process.stdin)


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _exit_text(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def result_of(run: RunFolder) -> Result | None:
    """Return the results written by the process that played a run, or None without results."""
    try:
        return read_result(run)
    except (OSError, InputError, JournalError):
        return None


def _error(answer: dict[str, Any]) -> LongspanError | None:
    if answer["error"] is None:
        return None
    return StoppedError(answer["error"]) if answer["stopped"] else LongspanError(answer["error"])


# The worker.


@final
class _Borrower:
    """Asks the parent process, which keeps the ledger, to reserve the cost of calls."""

    def __init__(self, output: IO[bytes]) -> None:
        self._output = output
        self._tickets = 0
        self._asked: dict[int, tuple[trio.Event, list[dict[str, Any]]]] = {}
        self._drawing: dict[int, queue.SimpleQueue[str | None]] = {}
        self._draws = itertools.count(1)
        self._token: trio.lowlevel.TrioToken | None = None

    def ledger(self, limit: Amount) -> Ledger:
        """Return a ledger for all work in the current Trio loop, under a limit for all processes."""
        self._token = trio.lowlevel.current_trio_token()
        return Ledger() if limit == UNLIMITED else SharedLedger(limit, self)

    def hear(self, answer: dict[str, Any]) -> None:
        """Process an answer from the parent. May be called from another thread."""
        if "draw" in answer:
            self._drawing.pop(answer["draw"]).put(answer["problem"])
        elif self._token is not None:
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._take_answer, answer)

    def _take_answer(self, answer: dict[str, Any]) -> None:
        if answer["ticket"] in self._asked:  # it is still waiting
            answered, answers = self._asked[answer["ticket"]]
            answers.append(answer)
            answered.set()

    async def reserve(self, worst: Worst) -> tuple[int, Amount]:
        """Reserve the cost of a call (see `Keeper`)."""
        self._tickets += 1
        ticket = self._tickets
        answered, answers = self._asked[ticket] = trio.Event(), list[dict[str, Any]]()
        what = {"call": astuple(worst)} if isinstance(worst, UnpricedCall) else {"worst": astuple(worst)}
        try:
            _send(self._output, {"reserve": ticket, **what})
            await answered.wait()
        finally:
            del self._asked[ticket]
        if answers[0]["problem"] is not None:
            raise StoppedError(answers[0]["problem"])
        return ticket, Amount(*answers[0]["reserved"])

    async def release(self, ticket: int, amount: Amount | None) -> None:
        """Return a ticket."""
        _send(self._output, {"release": ticket, "amount": None if amount is None else astuple(amount)})

    def draw(self, ticket: int, more: Amount) -> str | None:
        """Reserve more for a ticket, and wait for the answer, which another thread reads."""
        number, answer = next(self._draws), queue.SimpleQueue[str | None]()
        self._drawing[number] = answer
        _send(self._output, {"draw": number, "for": ticket, "more": astuple(more)})
        return answer.get()

    def spend(self, amount: Amount) -> None:
        """Count an amount."""
        _send(self._output, {"spend": astuple(amount)})


def main(pages: Pages | None) -> None:
    """Play the runs that the parent process sends, until it exits, and write their `pages`."""
    prepare_streams()
    with report_crashes(), os.fdopen(os.dup(1), "wb") as output:
        os.dup2(2, 1)  # output printed by an agent must not get into the protocol
        orders: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        borrower = _Borrower(output)
        is_playing = threading.Event()
        threading.Thread(target=_read, args=(orders, borrower, is_playing), daemon=True).start()
        while (order := orders.get()) is not None:
            is_playing.set()
            manifest = Manifest.model_validate_json(order["manifest"])  # already checked by the parent process
            vouch_for(manifest)
            with export_traces(order["otel"]) as tracing:
                answer = _play(RunFolder(Path(order["run"]), manifest), Amount(*order["limit"]), borrower, output, pages)
            is_playing.clear()
            _send(output, answer | {"spans": tracing.counts if tracing is not None else None})
        end_all()
        end_process(UNCLOSED if take_failures() else 0)


def _read(orders: queue.SimpleQueue[dict[str, Any] | None], borrower: _Borrower, is_playing: threading.Event) -> None:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "ticket" in message or "draw" in message:
            borrower.hear(message)
        else:
            orders.put(message)
    if is_playing.is_set():
        end_process(0)
    orders.put(None)


_SENDING: Final = threading.Lock()


def _send(output: IO[bytes], message: dict[str, Any]) -> None:
    try:
        with _SENDING:  # memories that were lent a model call it from threads
            output.write(_line(message))
            output.flush()
    except BrokenPipeError:  # the parent has exited, as at the end of the input
        end_process(0)


def _play(run: RunFolder, limit: Amount, borrower: _Borrower, output: IO[bytes], pages: Pages | None) -> dict[str, Any]:
    """Play one run, under a limit for all processes."""

    def send_event(heard: RunEvent) -> None:
        _send(output, {"conversation": heard.conversation, "event": heard.event.model_dump(mode="json")})

    async def play(plan: Plan) -> LongspanError | None:
        return (await play_runs([(plan, run)], borrower.ledger(limit), listener=send_event, pages=pages, signals=True))[0].error

    error: LongspanError | None = None
    try:
        error = trio.run(play, replan_run(run.manifest, run.manifest.agent, run.path.parent))
    except LongspanError as failure:
        error = failure
    return {"error": None if error is None else str(error), "stopped": isinstance(error, StoppedError)}
