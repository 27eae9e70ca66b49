"""Judging in the background: when a test ends, the judge decides everything that rules cannot, while the next tests play."""

from __future__ import annotations

from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, final

import trio

from longspan.simulator.base.errors import LongspanError
from longspan.simulator.contract.queries import Query
from longspan.simulator.journal.transcript import Change, PlayedTest
from longspan.simulator.results.gradebook.gradebook import Gradebook
from longspan.simulator.results.gradebook.worker import GradingWorker
from longspan.simulator.results.judging.cached_model import CachedModel
from longspan.simulator.results.judging.judge import LLMJudge

__all__ = ["BackgroundJudge", "judge_run"]


@final
class BackgroundJudge:
    """Has the judge answer the queries of a run's graders as tests end. On exit, the context manager waits for all answers."""

    def __init__(self, model: CachedModel, worker: GradingWorker) -> None:
        self.judge = LLMJudge(model)
        self._model = model
        self._worker = worker
        self._stack = AsyncExitStack()
        self._nursery: trio.Nursery | None = None
        self._failure: LongspanError | None = None

    async def __aenter__(self) -> BackgroundJudge:
        self._nursery = await self._stack.enter_async_context(trio.open_nursery())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # Queries that were sent have been paid for, so wait for their answers unless the run is being cancelled.
        await self._stack.aclose()
        if error is None and self._failure is not None:
            raise self._failure

    def on_change(self, conversation: str, change: Change) -> None:
        """Start judging a test when it ends. Call this with each change of a conversation."""
        if not isinstance(change, PlayedTest) or change.status != "played" or not self._worker.gradebook.grades(conversation, change.id):
            return
        if self._nursery is not None:
            self._nursery.start_soon(self._judge_test, conversation, change)

    async def _judge_test(self, conversation: str, played: PlayedTest) -> None:
        """Ask a test's queries, grade it again, and repeat until there are no new queries or the run is stopped.

        An error is raised on exit.
        """
        answers: dict[str, dict[str, Any] | str] = {}
        while True:
            grade = await self._worker.grade(conversation, played, dict(answers))
            queries = {query.about: query for query in grade.asks if query.about not in answers} if grade is not None else {}
            if not queries:
                return
            async with trio.open_nursery() as nursery:
                for query in queries.values():
                    nursery.start_soon(self._ask, query, answers)
            if self._failure is not None:
                return

    async def _ask(self, query: Query[Any], answers: dict[str, dict[str, Any] | str]) -> None:
        try:
            answer = await self._model.ask(query)
        except LongspanError as error:  # such as an exceeded cost limit or a full disk
            self._failure = error
        else:
            answers[query.about] = answer if isinstance(answer, str) else answer.model_dump(mode="json")


async def judge_run(gradebook: Gradebook, model: CachedModel) -> None:
    """Have a model answer all queries of a run's graders. Queries that it has already answered are not sent again.

    Raises StoppedError if a cost limit could be exceeded, and JournalError if answers cannot be stored.
    """
    async with BackgroundJudge(model, GradingWorker(gradebook)) as judging:
        for conversation, transcript in gradebook.transcripts.items():
            for played in transcript.tests.values():
                if played.definition.scenario in gradebook.scenarios:
                    judging.on_change(conversation, played)
