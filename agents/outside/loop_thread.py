"""A thread with its own asyncio loop. A user's object lives there from its constructor to its end."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
import weakref
from collections.abc import Awaitable, Callable
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from contextvars import copy_context
from functools import cache
from typing import Any, Final, TypeVar, final

import outcome
import trio

from longspan.agents.base import AgentError
from longspan.simulator.base.closing import end_before_exit, report_failure
from longspan.simulator.base.errors import one_line
from longspan.simulator.base.hard_exit import LOOPS

__all__ = ["LoopThread", "share_thread", "wait_for"]

T = TypeVar("T")

CANCEL_SECONDS: Final = 2.0
"""The seconds that a cancelled asyncio task has to clean up."""

CLOSE_SECONDS: Final = 5.0
"""The seconds for cancelling tasks that are left at the end."""


@final
class LoopThread:
    """Calls functions, always in the same thread. One asyncio loop awaits the awaitables that they return, concurrently.

    The loop also runs between calls. It stops during a call of a function, so that synchronous code may use `asyncio.run`. `name`
    identifies the object that lives there. A `shared` thread is never closed.
    """

    def __init__(self, name: str, *, shared: bool = False) -> None:
        self._shared = shared
        self._service = service = _Service(name)
        _services.add(service)
        threading.Thread(target=service.run, name="longspan: an agent", daemon=True).start()
        weakref.finalize(self, service.stop).atexit = False  # in case `close` is never called; at exit, `_end_all` also waits

    def call_now(self, function: Callable[[], Any]) -> Any:
        """Call a function, and block until it returns."""
        return self._service.start(function).done.result().unwrap()

    async def call(self, function: Callable[[], Any]) -> Any:
        """Call a function, and return its result, awaited if it is awaitable.

        Cancelling this cancels the awaiting task too. Synchronous code cannot be cancelled: it keeps running.
        """
        job = self._service.start(function)
        try:
            await wait_for(job.done)
        finally:
            if not job.done.done():
                job.cancelled = True
                self._service.loop.call_soon_threadsafe(job.cancel)
                if job.task is not None:
                    with trio.move_on_after(CANCEL_SECONDS, shield=True):
                        await wait_for(job.done)
        return job.done.result().unwrap()

    async def close(self) -> None:
        """Cancel the remaining tasks, and close the loop.

        Raises AgentError if that fails or takes more than CLOSE_SECONDS, and immediately if a call never returned.
        """
        if self._shared:
            return
        self._service.stop()
        if not self._service.is_stuck:
            with trio.move_on_after(CLOSE_SECONDS):
                await wait_for(self._service.ended)
        if problem := self._service.leave():
            raise AgentError(problem)


@cache
def share_thread(name: str) -> LoopThread:
    """Return the thread of the objects of a module. It lives as long as they do, since their clients may belong to its loop."""
    return LoopThread(name, shared=True)


@final
class _Service:
    """A loop and the jobs for it. It has no reference to its LoopThread, so that it ends when that is garbage-collected."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.ended: Future[None] = Future()
        self._name = name
        self._jobs: asyncio.Queue[_Job | None] = asyncio.Queue()
        self._newest: Future[Any] | None = None
        self._stopped = False
        # asyncio would shut down its own executor in a new thread, and Python 3.12 starts none once the interpreter exits
        self._executor = ThreadPoolExecutor(thread_name_prefix="asyncio")
        self.loop.set_default_executor(self._executor)

    @property
    def is_stuck(self) -> bool:
        """Whether a call has not returned."""
        return self._newest is not None and not self._newest.done()

    def start(self, function: Callable[[], Any]) -> _Job:
        """Queue a function for the thread to call."""
        job = _Job(function)
        self._newest = job.done
        self.loop.call_soon_threadsafe(self._jobs.put_nowait, job)
        return job

    def stop(self) -> None:
        """Make the thread end after the functions that are queued already."""
        if not self._stopped:
            self._stopped = True
            self.loop.call_soon_threadsafe(self._jobs.put_nowait, None)

    def leave(self) -> str:
        """Stop tracking the thread, whether or not it has ended. Return the problem with it, or ""."""
        _services.discard(self)
        if not self.ended.done():
            return f"{self._name}: its thread did not end: {'a call has' if self.is_stuck else 'calls or tasks have'} not returned"
        error = self.ended.exception()
        return "" if error is None else f"{self._name}: its asyncio loop ended with {one_line(error)}"

    def run(self) -> None:
        """Run jobs until the queue yields None, then close the loop."""
        try:
            with closing(self.loop):
                self._work()
                self._run_until_complete(self.loop.create_task(_cancel_tasks(self.loop)))
                self._executor.shutdown(cancel_futures=True)
        except BaseException as error:
            self.ended.set_exception(error)
        else:
            _services.discard(self)
            self.ended.set_result(None)

    def _work(self) -> None:
        while True:
            job = self._run_until_complete(self.loop.create_task(self._jobs.get()))
            if job is None:
                break
            job.run(self.loop)
            del job  # it references the user's object

    def _run_until_complete(self, task: asyncio.Task[T]) -> T:
        while not task.done():
            with suppress(SystemExit, KeyboardInterrupt, RuntimeError):  # another task may raise one, or stop the loop
                self.loop.run_until_complete(task)
        return task.result()


_services: Final[set[_Service]] = set()
"""The services whose threads may still run."""


def _end_all() -> None:
    """End all loops and wait for their threads."""
    left = list(_services)
    for service in left:
        service.stop()
    futures.wait([service.ended for service in left if not service.is_stuck], CLOSE_SECONDS)
    for service in left:
        if problem := service.leave():
            report_failure(problem)


end_before_exit(_end_all)
os.register_at_fork(after_in_child=_services.clear)  # a forked child has none of its parent's threads


@final
class _Job:
    """A function to call. `done` receives the outcome; `task` awaits the function's result."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.done: Future[outcome.Outcome[Any]] = Future()
        self.task: asyncio.Task[outcome.Outcome[Any]] | None = None
        self.cancelled = False
        self._function = function
        self._context = copy_context()

    def run(self, loop: asyncio.AbstractEventLoop) -> None:
        """Call the function in the loop's thread, and start awaiting its result. Errors of any class are an outcome."""
        result: outcome.Outcome[Any] = outcome.Error(asyncio.CancelledError())
        function, self._function = self._function, _nothing  # drop the reference cycle: function, agent, thread
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


LOOPS.add(_Service._run_until_complete.__code__)


def _nothing() -> None:
    """Do nothing."""


async def _result_of(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


async def _cancel_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel all other tasks, and close their async generators. Raises the exception of a task that did not end cleanly."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    await loop.shutdown_asyncgens()
    for error in results:
        if isinstance(error, Exception):
            raise error


async def wait_for(done: Future[Any]) -> None:
    """Wait until a thread has set a result."""
    event, token = trio.Event(), trio.lowlevel.current_trio_token()

    def wake(_: Future[Any]) -> None:
        with suppress(trio.RunFinishedError):  # the run has ended, so no task waits for the result
            token.run_sync_soon(event.set)

    done.add_done_callback(wake)
    await event.wait()
