"""An agent given by the Python program that plays the runs (`longspan.run(agent=...)`): an object, a function or a class.

A class, or a function without parameters, is called for each conversation. Its result lives in a separate thread with an asyncio loop.
Anything else is shared: conversations run one after another, with a `reset` before each. Its methods are called in one thread; async
methods run in the loop where the program awaits the runs, if any. A shared object is never closed.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, final
from weakref import WeakKeyDictionary

import outcome
import trio

from longspan.agents.base import AgentError, AgentOptions, BaseAgent, Danger, InputError
from longspan.agents.outside.frameworks import adapt
from longspan.agents.outside.in_process import Home
from longspan.agents.outside.loop_thread import LoopThread, wait_for
from longspan.agents.outside.object_agent import ObjectAgent
from longspan.agents.outside.remote import RemoteOptions
from longspan.agents.prices import is_price
from longspan.simulator.subject.in_memory_agents import GivenObject, find_agent

__all__ = ["GivenAgent"]

CANCEL_SECONDS: Final = 2.0
"""Seconds for a cancelled call in the program's loop to clean up."""

_threads: Final[WeakKeyDictionary[GivenObject, LoopThread]] = WeakKeyDictionary()
"""The threads of shared objects."""


@final
class GivenAgent(ObjectAgent):
    """An object, a function or a class that a Python program has given to `longspan.run`."""

    class Options(RemoteOptions):
        """The options of a user's agent."""

    pinned = False

    @classmethod
    def adapt(cls, agent: Any) -> Any:
        """Return a framework's object with a method `reply`, and other objects unchanged. Raises InputError if it cannot be adapted."""
        try:
            return adapt(agent)
        except (TypeError, ValueError, ImportError) as error:
            raise InputError(f"agent {type(agent).__name__}: {error}") from error

    @classmethod
    def danger(cls, target: str, options: Mapping[str, str]) -> Danger | None:
        """Return "send" if the options set prices, else None: the object belongs to the program, under any name."""
        return "send" if any(map(is_price, options)) else None

    def __init__(self, target: str, options: AgentOptions | None = None) -> None:
        settings = options if isinstance(options, self.Options) else self.Options()
        found = find_agent(target)
        if found is None:
            raise InputError(
                f"given:{target} is an object of a Python program: only that can play with it, by longspan.run or longspan.resume"
            )
        self._given = found
        self._begun = False
        super().__init__(f"given:{target}", settings, _home(found), lambda: _as_object(found.make()))

    async def begin(self, name: str) -> None:
        """Reset a shared object before its first call."""
        if self._given.shared and not self._begun:
            self._begun = True
            if name != "reset" and self.has("reset"):
                await self.call("reset")

    async def reset(self) -> None:
        if not self._given.shared:
            await super().reset()
        elif self.has("reset"):
            await self.call("reset")
        elif self._begun:
            raise AgentError(f"{self.name} cannot start over: add a method `reset(self)`, or give what makes a new one")

    async def close(self) -> None:
        """Close the object, unless it is shared."""
        if not self._given.shared:
            await super().close()

    def _check_made(self, made: Any) -> Any:
        if isinstance(made, BaseAgent):
            self.thread = None
        checked = super()._check_made(made)
        if isinstance(made, _Function):
            self._process.code = made.function
        return checked


def _home(given: GivenObject) -> Home | None:
    """Return where the object runs, None for Trio."""
    if not given.shared:
        return LoopThread("given")
    shared = _as_object(given.make())
    if isinstance(shared, BaseAgent):
        return None
    if _is_async(shared):
        if given.under_trio:
            return None
        if given.loop is not None:
            return _CallersLoop(given.loop)
    return _threads.setdefault(given, LoopThread("given"))


def _as_object(made: Any) -> Any:
    """Return an object with a method `reply`, wrapping a framework's object or a function if necessary."""
    made = adapt(made)
    return _Function(made) if callable(made) and not callable(getattr(made, "reply", None)) else made


def _is_async(shared: Any) -> bool:
    reply = shared.function if isinstance(shared, _Function) else getattr(shared, "reply", None)
    return inspect.iscoroutinefunction(reply) or inspect.iscoroutinefunction(getattr(reply, "__call__", None))  # noqa: B004


@final
class _Function:
    """An agent that calls a function of the message's text."""

    def __init__(self, function: Callable[[str], Any]) -> None:
        self.function = function

    def reply(self, message: Any) -> Any:
        return self.function(message.text)


@final
class _CallersLoop:
    """The asyncio loop where the program awaits the runs."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def call_now(self, function: Callable[[], Any]) -> Any:
        async def called() -> Any:
            return function()

        return asyncio.run_coroutine_threadsafe(called(), self._loop).result()

    async def call(self, function: Callable[[], Any]) -> Any:
        async def called() -> Any:
            result = function()
            return await result if inspect.isawaitable(result) else result

        done = asyncio.run_coroutine_threadsafe(outcome.acapture(called), self._loop)
        try:
            await wait_for(done)
        finally:
            if not done.done():
                done.cancel()
                with trio.move_on_after(CANCEL_SECONDS, shield=True), suppress(asyncio.CancelledError):  # cancelled by us
                    await wait_for(done)
        return done.result().unwrap()

    async def close(self) -> None:
        """Do nothing: the loop belongs to the program."""
