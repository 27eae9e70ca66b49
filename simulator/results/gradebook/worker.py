"""Grading in a worker thread, so that signals and pages are served even while a slow test is graded."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import TypeVar, final

import trio

from longspan.simulator.contract.graded_record import Grade
from longspan.simulator.contract.queries import JudgeAnswers
from longspan.simulator.journal.transcript import Change, PlayedTest
from longspan.simulator.results.gradebook.gradebook import Gradebook

__all__ = ["GradingWorker"]

T = TypeVar("T")


@final
class GradingWorker:
    """Grades the tests of a gradebook, one after another, concurrently with the event loop.

    A running grader cannot be stopped. A cancelled caller leaves it behind in its thread, and later callers wait for it to end.
    """

    def __init__(self, gradebook: Gradebook) -> None:
        self.gradebook = gradebook
        self._one_at_a_time = trio.CapacityLimiter(1)
        self._waiting: set[trio.CancelScope] = set()
        self._hurries = False

    @property
    def busy(self) -> bool:
        """Whether a grader is running, perhaps one that was left behind."""
        return self._one_at_a_time.borrowed_tokens > 0

    async def do(self, work: Callable[[], T]) -> T:
        """Run work that calls graders, and return its result."""
        # Python cannot stop a thread, so a cancelled caller must not wait for it.
        return await trio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._one_at_a_time)

    async def grade(self, conversation: str, test: PlayedTest, answers: JudgeAnswers = MappingProxyType({})) -> Grade | None:
        """Grade a finished test as `Gradebook.grade` does. Return None after `hurry`."""
        if self._hurries:
            return None
        with trio.CancelScope() as scope:
            self._waiting.add(scope)
            try:
                return await self.do(partial(self.gradebook.grade, conversation, test, answers))
            finally:
                self._waiting.discard(scope)
        return None

    async def on_change(self, conversation: str, change: Change) -> None:
        """Grade the test that ended with a change, if one did and its scenario is known. Call this with each change."""
        if not isinstance(change, PlayedTest) or change.status != "played" or not self.gradebook.grades(conversation, change.id):
            return
        if change.definition.scenario in self.gradebook.scenarios:
            await self.grade(conversation, change)

    def hurry(self) -> None:
        """Stop waiting for single tests' grades, now and in future."""
        self._hurries = True
        for scope in self._waiting:
            scope.cancel()
