"""Judging beside a conversation: what rules leave open is asked as soon as a test has ended, while the next ones play."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import final

import trio

from simulator import events
from simulator.errors import LongspanError
from simulator.folder import RunFolder
from simulator.grades import grade, scenarios_of
from simulator.judge import LLMJudge
from simulator.scenario import Ask, Scenario
from simulator.transcript import Transcript

__all__ = ["Judging", "judge_run"]


@final
class Judging:
    """Listens to a conversation and has the judge decide what its tests' graders ask. Entered, it waits at its end for all."""

    def __init__(self, judge: LLMJudge, scenarios: Mapping[str, Scenario]) -> None:
        self.judge = judge
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
            played = self._transcript.tests[event.test]
            given = grade(self._scenarios[played.definition.scenario], played, self._transcript, {})
            if given.ask is not None:
                self._nursery.start_soon(self.decide, given.ask)

    async def decide(self, ask: Ask) -> None:
        """Have the judge decide. What stops it is told when the conversation has ended."""
        try:
            await self.judge.judge(ask.statement, ask.text)
        except LongspanError as error:  # a limit of dollars, a full disk
            self._failure = error


async def judge_run(run: RunFolder, judge: LLMJudge) -> None:
    """Have a judge decide all that the graders of a run's tests ask. What it has answered already is not asked again.

    Raises StoppedError where a limit of dollars would be passed, JournalError where answers cannot be kept.
    """
    scenarios = scenarios_of(run.manifest)
    asks = [
        given.ask
        for transcript in run.transcripts().values()
        for played in transcript.tests.values()
        if played.status == "played" and played.definition.scenario in scenarios
        if (given := grade(scenarios[played.definition.scenario], played, transcript, {})).ask is not None
    ]
    judging = Judging(judge, scenarios)
    async with judging, trio.open_nursery() as nursery:
        for ask in asks:
            nursery.start_soon(judging.decide, ask)
