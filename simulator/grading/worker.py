"""Grades in a worker thread, so that signals are answered and pages served whatever is being graded."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import TypeVar, final

import trio

from longspan.simulator.grading.grades import Gradebook
from longspan.simulator.queries import JudgeAnswers
from longspan.simulator.record import Grade
from longspan.simulator.transcript import Change, PlayedTest

__all__ = ["GradingWorker"]

T = TypeVar("T")


@final
class GradingWorker:
    """Grades the tests of a gradebook, one after another, beside the event loop.

    A caller that is cancelled does not wait for its grader, which cannot be stopped: it is left behind in its thread, and
    later callers wait for it.
    """

    def __init__(self, gradebook: Gradebook) -> None:
        self._gradebook = gradebook
        self._one_at_a_time = trio.CapacityLimiter(1)
        self._waiting: set[trio.CancelScope] = set()
        self._hurries = False

    @property
    def busy(self) -> bool:
        """Whether a grader is running, perhaps one that was left behind."""
        return self._one_at_a_time.borrowed_tokens > 0

    async def do(self, work: Callable[[], T]) -> T:
        """Do work that calls graders, and return what it returns."""
        return await trio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._one_at_a_time)

    async def grade(self, conversation: str, test: PlayedTest, answers: JudgeAnswers = MappingProxyType({})) -> Grade:
        """Grade a finished test as `Gradebook.grade` does."""
        return await self.do(partial(self._gradebook.grade, conversation, test, answers))

    async def on_change(self, conversation: str, change: Change) -> None:
        """Grade the test that ended with a change, if one did and its scenario is known. Call this with each change."""
        if self._hurries or not isinstance(change, PlayedTest) or change.status != "played":
            return
        if change.definition.scenario not in self._gradebook.scenarios:
            return
        with trio.CancelScope() as scope:
            self._waiting.add(scope)
            try:
                await self.grade(conversation, change)
            finally:
                self._waiting.discard(scope)

    def hurry(self) -> None:
        """Make `on_change` return at once, now and from now on, whether or not a test has been graded."""
        self._hurries = True
        for scope in self._waiting:
            scope.cancel()
