"""A thread with an asyncio loop of its own. A user's object lives there from its constructor to its end."""

from __future__ import annotations

import asyncio
import inspect
import threading
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Final, final

import outcome
import trio

from longspan.simulator.base.hard_exit import LOOPS

__all__ = ["LoopThread", "wait"]

CANCEL_SECONDS: Final = 2.0
"""Seconds that a cancelled asyncio task has to clean up."""

CLOSE_SECONDS: Final = 5.0
"""Seconds that the tasks which are left at the end have to be cancelled."""


@final
class LoopThread:
    """Calls functions, always in the same thread. Awaitables that they return are awaited by one asyncio loop, at the same time.

    The loop also runs between calls. It stands still while a function is called, so that plain code may use `asyncio.run`.
    """

    def __init__(self) -> None:
        runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = runner.get_loop()
        self._jobs: asyncio.Queue[_Job | None] = asyncio.Queue()
        self._ended: Future[None] = Future()
        self._newest: Future[Any] | None = None
        threading.Thread(target=_serve, args=(runner, self._jobs, self._ended), name="longspan: an agent", daemon=True).start()
        self._end = weakref.finalize(self, _post, self._loop, self._jobs, None)  # also where nobody calls `close`

    def call_now(self, function: Callable[[], Any]) -> Any:
        """Call a function, and block until it has returned."""
        return self._start(function).done.result().unwrap()

    async def call(self, function: Callable[[], Any]) -> Any:
        """Call a function, and return its result, once that has been awaited if it is an awaitable.

        If this is cancelled, the task that awaits is cancelled too. Code that does not await cannot be: it is left to itself.
        """
        job = self._start(function)
        try:
            await wait(job.done)
        finally:
            if not job.done.done():
                job.cancelled = True
                self._loop.call_soon_threadsafe(job.cancel)
                if job.task is not None:
                    with trio.move_on_after(CANCEL_SECONDS, shield=True):
                        await wait(job.done)
        return job.done.result().unwrap()

    async def close(self) -> None:
        """Cancel all tasks that are left, and close the loop. It is given up after CLOSE_SECONDS, and at once if a call never returned."""
        self._end()
        if self._newest is None or self._newest.done():
            with trio.move_on_after(CLOSE_SECONDS):
                await wait(self._ended)

    def _start(self, function: Callable[[], Any]) -> _Job:
        job = _Job(function)
        self._newest = job.done
        _post(self._loop, self._jobs, job)
        return job


@final
class _Job:
    """A function to call. `done` gets the outcome; `task` awaits the function's result."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.done: Future[outcome.Outcome[Any]] = Future()
        self.task: asyncio.Task[outcome.Outcome[Any]] | None = None
        self.cancelled = False
        self._function = function
        self._context = copy_context()

    def run(self, loop: asyncio.AbstractEventLoop) -> None:
        """Call the function in the loop's thread, and start awaiting its result. Errors of whatever class are an outcome."""
        result: outcome.Outcome[Any] = outcome.Error(asyncio.CancelledError())
        function, self._function = self._function, _nothing  # it may hold the agent, which holds the thread
        if not self.cancelled:
            result = outcome.capture(self._context.run, function)
        del function
        if isinstance(result, outcome.Value) and inspect.isawaitable(result.value):
            self.task = loop.create_task(outcome.acapture(_result_of, result.value), context=self._context)
            self.task.add_done_callback(self._finish)
        else:
            self.done.set_result(result)

    def _finish(self, task: asyncio.Task[outcome.Outcome[Any]]) -> None:
        self.done.set_result(outcome.Error(asyncio.CancelledError()) if task.cancelled() else task.result())

    def cancel(self) -> None:
        """Cancel the task, in the loop's thread."""
        if self.task is not None:
            self.task.cancel()


def _serve(runner: asyncio.Runner, jobs: asyncio.Queue[_Job | None], ended: Future[None]) -> None:
    """Do jobs until there comes None, then end the loop."""
    loop = runner.get_loop()
    try:
        with runner:
            while True:
                waiting = loop.create_task(jobs.get())
                while not waiting.done():
                    with suppress(SystemExit, KeyboardInterrupt, RuntimeError):  # another task raises one, or stops the loop
                        loop.run_until_complete(waiting)
                job = waiting.result()
                if job is None:
                    break
                job.run(loop)
                del job, waiting  # they hold the user's object
    finally:
        ended.set_result(None)


LOOPS.add(_serve.__code__)


def _post(loop: asyncio.AbstractEventLoop, jobs: asyncio.Queue[_Job | None], job: _Job | None) -> None:
    loop.call_soon_threadsafe(jobs.put_nowait, job)


def _nothing() -> None:
    """Do nothing."""


async def _result_of(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


async def wait(done: Future[Any]) -> None:
    """Wait until a thread has set a result."""
    event, token = trio.Event(), trio.lowlevel.current_trio_token()

    def wake(_: Future[Any]) -> None:
        with suppress(trio.RunFinishedError):  # the run ended meanwhile: nobody waits any more
            token.run_sync_soon(event.set)

    done.add_done_callback(wake)
    await event.wait()
