"""A running test. Its coroutine is stepped by hand in its own Trio task, so that everything it awaits can be checked."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from types import coroutine
from typing import Any, Final, final

import trio
from outcome import Error

from longspan.simulator.base.blame import at_line, is_fault
from longspan.simulator.base.errors import ScenarioError, journal_text
from longspan.simulator.contract.messages import Turn
from longspan.simulator.contract.scenario import Test
from longspan.simulator.contract.stage import Request, Stage, View
from longspan.simulator.journal import events

__all__ = ["TestTask"]

MAX_ERRORS_RAISED: Final = 10
"""The most errors raised inside a test that broke the rules. If it catches them all, its coroutine is closed."""


@final
@dataclass(slots=True, eq=False)
class TestTask:
    """Runs one test in its own Trio task, gives it the floor and takes it back.

    `request` is the test's pending request, or None once it has ended. `error` is the error that ended it, and `cause` its exception.
    `told`: the error has been journaled. `stopped`: the test left its last segment unsaid. `needles` (its trunk's come first) and `watched`
    are turn numbers.
    """

    test: Test
    view: View
    request: Request | None = None
    error: str | None = None
    cause: BaseException | None = None
    started: bool = False
    told: bool = False
    stopped: bool = False
    needles: list[int] = field(default_factory=list)
    watched: list[int] = field(default_factory=list)
    awards: list[events.Award] = field(default_factory=list)
    _floor: trio.Semaphore = field(default_factory=partial(trio.Semaphore, 0))
    _returned: trio.Semaphore = field(default_factory=partial(trio.Semaphore, 0))
    _response: Any = None
    _cancelled: bool = False

    async def start(self, nursery: trio.Nursery) -> None:
        """Start the test, and wait until it gives the floor back."""
        self.started = True
        nursery.start_soon(self._run)
        await self._returned.acquire()

    async def resume(self, response: Any) -> None:
        """Respond to the test's request, and wait until it gives the floor back."""
        self._response = response
        self._floor.release()
        await self._returned.acquire()

    async def refuse(self, why: str) -> None:
        """Respond to the test's request with an error, and wait until it gives the floor back."""
        await self.resume(ScenarioError(why))

    async def show(self, turn: Turn) -> None:
        """Respond to the test's Watch with a turn."""
        self.watched.append(turn.number)
        await self.resume(turn)

    def cancel(self) -> None:
        """End the test at its current wait. Does nothing if it has ended or not started."""
        if self.started and not self._cancelled:
            self._cancelled = True
            self._floor.release()

    async def cancel_and_wait(self) -> None:
        """Cancel the test, and wait until it has ended."""
        self.cancel()
        await self._returned.acquire()

    async def _run(self) -> None:
        """Run the test from its first line to its end. Its exceptions are stored in `error`, not raised."""
        test = self.test
        try:
            stage = Stage(test.script, test.seed, self.view, self._award, len(self.needles))
            await self._drive(test.scenario.play(stage))
        except _TestCancellation:
            pass
        except BaseException as error:
            if not is_fault(error):
                raise
            self.fails(error)
        self._cancelled = True
        self.request = None
        self._returned.release()

    def fails(self, error: BaseException) -> None:
        """Record the error that ends the test, with the line of the scenario's code that raised it."""
        text = str(error) if isinstance(error, ScenarioError) else journal_text(error)
        self.error, self.cause = f"{text}{at_line(error, type(self.test.scenario))}", error

    def _award(self, points: float, why: str) -> None:
        self.awards.append(events.Award(test=self.test.id, turn=self.view.turns - 1, points=points, why=why))

    async def _drive(self, play: Any) -> None:
        """Step through the test's coroutine. Raise ScenarioError if it awaits anything but requests of its Stage."""
        step = partial(play.send, None)
        failure: ScenarioError | _TestCancellation | None = None
        attempts = MAX_ERRORS_RAISED
        while attempts:
            attempts -= failure is not None
            try:
                awaited = step()
            except StopIteration:
                break
            except Exception as error:
                if failure is not None and error is not failure:
                    raise failure from error
                raise
            if not isinstance(awaited, Request):
                failure = failure or ScenarioError("a test may await nothing but its Stage")
                outcome = await _await_cancelled(awaited)
                if not isinstance(outcome, Error):
                    step = partial(play.send, outcome)  # a wait that cannot be cancelled, such as a nursery or a thread
                    continue
            elif failure is None:
                try:
                    step = partial(play.send, await self._serve(awaited))
                    continue
                except (ScenarioError, _TestCancellation) as error:
                    failure = error
            step = partial(play.throw, failure)
        else:
            with suppress(RuntimeError):
                play.close()  # it caught every error and carried on
        if failure is not None:
            raise failure

    async def _serve(self, request: Request) -> Any:
        """Give back the floor with a request, and wait for the response."""
        self.request = request
        with trio.CancelScope(shield=True):  # only the conversation may end this wait, not the test
            self._returned.release()
            await self._floor.acquire()
        if self._cancelled:
            raise _TestCancellation
        if trio.current_effective_deadline() == float("-inf"):
            raise ScenarioError("a test must not cancel its Stage calls")
        if isinstance(self._response, ScenarioError):
            raise self._response
        return self._response


class _TestCancellation(BaseException):
    """Raised in a test when it is cancelled. Not an Exception, so that tests do not catch it by accident."""


@coroutine
def _yield_to_trio(trap: Any) -> Any:
    return (yield trap)


async def _await_cancelled(trap: Any) -> Any:
    """Let Trio handle a foreign wait and cancel it immediately, so that nothing can wake the test later."""
    with trio.CancelScope() as scope:
        scope.cancel()
        return await _yield_to_trio(trap)
