"""Judging beside a conversation: what rules leave open is asked as soon as a test has ended, while the next ones play."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, final

import trio

from longspan.simulator import events
from longspan.simulator.errors import LongspanError
from longspan.simulator.grading.grades import grade, scenarios_of
from longspan.simulator.judging.cached_model import CachedModel
from longspan.simulator.judging.judge import LLMJudge
from longspan.simulator.queries import Query
from longspan.simulator.run_folder import RunFolder
from longspan.simulator.scenario import Scenario
from longspan.simulator.transcript import Played, Transcript

__all__ = ["Judging", "judge_run"]


@final
class Judging:
    """Listens to a conversation and has the judge decide what its tests' graders ask. Entered, it waits at its end for all."""

    def __init__(self, model: CachedModel, scenarios: Mapping[str, Scenario]) -> None:
        self.judge = LLMJudge(model)
        self._model = model
        self._scenarios = scenarios
        self._transcript = Transcript()
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

    def heard(self, event: events.Event) -> None:
        """Take the conversation's next event."""
        self._transcript.add(event)
        if isinstance(event, events.End) and self._nursery is not None:
            self._nursery.start_soon(self.settle, self._transcript.tests[event.test], self._transcript)

    async def settle(self, played: Played, transcript: Transcript) -> None:
        """Ask all that a test's grader wants to know, and what it wants to know then. What stops it is told at the end."""
        scenario = self._scenarios[played.definition.scenario]
        said: dict[str, dict[str, Any] | str] = {}
        while asks := {query.about: query for query in grade(scenario, played, transcript, said).asks if query.about not in said}:
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


async def judge_run(run: RunFolder, model: CachedModel) -> None:
    """Have a model decide all that the graders of a run's tests ask. What it has answered already is not asked again.

    Raises StoppedError where a limit of dollars would be passed, JournalError where answers cannot be kept.
    """
    scenarios = scenarios_of(run.manifest)
    async with Judging(model, scenarios) as judging, trio.open_nursery() as nursery:
        for transcript in run.transcripts().values():
            for played in transcript.tests.values():
                if played.status == "played" and played.definition.scenario in scenarios:
                    nursery.start_soon(judging.settle, played, transcript)
