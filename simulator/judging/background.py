"""Judging beside a conversation: what rules leave open is asked as soon as a test has ended, while the next ones play."""

from __future__ import annotations

from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, final

import trio

from longspan.simulator.errors import LongspanError
from longspan.simulator.grading.grades import Gradebook
from longspan.simulator.judging.cached_model import CachedModel
from longspan.simulator.judging.judge import LLMJudge
from longspan.simulator.queries import Query
from longspan.simulator.transcript import Change, PlayedTest

__all__ = ["Judging", "judge_run"]


@final
class Judging:
    """Listens to a run's conversations and has the judge decide what its tests' graders ask. Entered, it waits at its end for all."""

    def __init__(self, model: CachedModel, gradebook: Gradebook) -> None:
        self.judge = LLMJudge(model)
        self._model = model
        self._gradebook = gradebook
        self._stack = AsyncExitStack()
        self._nursery: trio.Nursery | None = None
        self._failure: LongspanError | None = None

    async def __aenter__(self) -> Judging:
        self._nursery = await self._stack.enter_async_context(trio.open_nursery())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # What was asked is paid for: it is waited for, unless the run is being cancelled.
        await self._stack.aclose()
        if error is None and self._failure is not None:
            raise self._failure

    def on_change(self, conversation: str, change: Change) -> None:
        """Take what the next event of a conversation changed."""
        if isinstance(change, PlayedTest) and change.status == "played" and self._nursery is not None:
            self._nursery.start_soon(self.settle, conversation, change)

    async def settle(self, conversation: str, played: PlayedTest) -> None:
        """Ask all that a test's grader wants to know, and what it wants to know then. What stops it is told at the end."""
        said: dict[str, dict[str, Any] | str] = {}
        grade = self._gradebook.grade
        while asks := {query.about: query for query in grade(conversation, played, said).asks if query.about not in said}:
            async with trio.open_nursery() as nursery:
                for query in asks.values():
                    nursery.start_soon(self._decide, query, said)
            if self._failure is not None:
                return

    async def _decide(self, query: Query[Any], said: dict[str, dict[str, Any] | str]) -> None:
        try:
            answer = await self._model.ask(query)
        except LongspanError as error:  # a limit of dollars, a full disk
            self._failure = error
        else:
            said[query.about] = answer if isinstance(answer, str) else answer.model_dump(mode="json")


async def judge_run(gradebook: Gradebook, model: CachedModel) -> None:
    """Have a model decide all that the graders of a run's tests ask. What it has answered already is not asked again.

    Raises StoppedError where a limit of dollars would be passed, JournalError where answers cannot be kept.
    """
    async with Judging(model, gradebook) as judging:
        for conversation, transcript in gradebook.transcripts.items():
            for played in transcript.tests.values():
                if played.definition.scenario in gradebook.scenarios:
                    judging.on_change(conversation, played)
