"""The common base of agents that are a user's object in this Python: calls with a timeout, and errors that name the agent."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from math import inf
from typing import Any, Final, Protocol, final

import trio

from longspan.agents.base import AgentError, Reply
from longspan.agents.outside.bridge import to_plain, with_usage
from longspan.agents.outside.protocol import ReplyAnswer, WorkAnswer, read_answer
from longspan.agents.outside.remote import OutsideAgent, RemoteOptions, too_slow
from longspan.simulator.base.blame import at_line, is_fault
from longspan.simulator.base.errors import one_line

__all__ = ["Home", "InProcess", "InProcessAgent"]

OF_A_MESSAGE: Final = re.compile(r"\bMessage\b")
"""The class name in Python's errors, when user code treats a message as its text."""


class Home(Protocol):
    """A place where objects run if they do not run under Trio."""

    def call_now(self, function: Callable[[], Any]) -> Any:
        """Call a function there and block until it returns."""
        ...

    async def call(self, function: Callable[[], Any]) -> Any:
        """Call a function there and return its result, awaited if it is awaitable."""
        ...

    async def close(self) -> None:
        """Shut the object down. No calls may follow."""
        ...


@final
class InProcess:
    """The place where an object runs: `thread`, or Trio without one. `name` identifies it in errors. A call may take `timeout` seconds."""

    def __init__(self, name: str, thread: Home | None, timeout: float) -> None:
        self.name = name
        self.thread = thread
        self.code: object = None  # the user's class or function, once known
        self._timeout = timeout

    def run_now(self, what: str, function: Callable[[], Any]) -> Any:
        """Call a function there and block until it returns. Errors become AgentErrors that name `what` raised them."""
        try:
            return function() if self.thread is None else self.thread.call_now(function)
        except BaseException as error:
            if not is_fault(error):
                raise
            raise self._failure(what, error) from error

    async def run(self, what: str, function: Callable[[], Any], at_most: float = inf) -> Any:
        """Call a function there and await its result, for at most `at_most` seconds or the agent's timeout.

        Errors become AgentErrors that name `what` raised them.
        """
        with trio.move_on_after(min(at_most, self._timeout)):
            try:
                if self.thread is not None:
                    return await self.thread.call(function)
                result = function()
                return await result if inspect.isawaitable(result) else result
            except BaseException as error:
                if not is_fault(error):
                    raise
                raise self._failure(what, error) from error
        problem = too_slow(self._timeout) if self._timeout <= at_most else f"it did not return within {at_most:g} s"
        raise AgentError(f"{self.name}: {what}: {problem}")

    def _failure(self, what: str, error: BaseException) -> AgentError:
        hint = ""
        if isinstance(error, RuntimeError) and "must be called from async context" in str(error):
            hint = "; async methods run under asyncio: to run under Trio, derive the class from longspan.BaseAgent"
        elif what == "reply" and isinstance(error, AttributeError | TypeError) and OF_A_MESSAGE.search(str(error)):
            hint = "; reply is given a message, and its text is message.text"
        return AgentError(f"{self.name}: {what} raised {one_line(error)}{at_line(error, self.code)}{hint}")


class InProcessAgent(OutsideAgent):
    """An agent that is an object in this Python. It runs in `thread`, or under Trio without one."""

    def __init__(self, name: str, settings: RemoteOptions, thread: Home | None) -> None:
        super().__init__(name, settings, name)
        self._process = InProcess(name, thread, settings.timeout)
        self.run_now, self.run = self._process.run_now, self._process.run

    @property
    def thread(self) -> Home | None:
        """Where the object runs, None for Trio."""
        return self._process.thread

    @thread.setter
    def thread(self, thread: Home | None) -> None:
        self._process.thread = thread

    def parse_answer(self, answer: dict[str, Any], call: str = "reply", kind: type[WorkAnswer] = ReplyAnswer) -> Reply:
        """Return a call's result, a dict, as a Reply, validated like the answer of an agent in another process. Raises AgentError."""
        try:
            return read_answer(json.dumps(with_usage(answer), allow_nan=False, default=to_plain).encode(), kind).reply(self.rates)
        except AgentError as error:
            raise AgentError(f"{self.name}: {call}: {error}") from error.__cause__
        except (TypeError, ValueError, RecursionError) as error:
            raise AgentError(f"{self.name}: {call} returned a dict that is not JSON: {one_line(error)}") from None
