"""How far a run is while it is played: score so far, cost, and about how long it will still take."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from math import fsum
from statistics import fmean
from typing import Final, NamedTuple, final

from longspan.simulator.grading.grades import Gradebook
from longspan.simulator.ledger import Spending, total_cost
from longspan.simulator.transcript import Change, PlayedTest, Turn

__all__ = ["EndedTest", "RunProgress", "RunStatus"]

ENOUGH: Final = 0.02
"""The share of a run that must have been played before the rest of it is guessed at."""


@final
class EndedTest(NamedTuple):
    """A test that has ended. `score` is None where the rules cannot tell, or nothing may be asked of its scenario here."""

    test: str
    score: float | None
    chance: float
    reason: str


@final
class RunProgress(NamedTuple):
    """Where a run is. `ended` of its `tests`; `score` is the sum of the means of so many `scenarios`; `seconds` were spent on
    replies, `left` are still to come, None while too little is known; `cost` in dollars, None for an unknown price; `used`:
    whether any model was."""

    ended: int
    tests: int
    open: int
    turns: int
    tokens: int
    now: datetime | None
    score: float
    scenarios: int
    used: bool
    cost: float | None
    seconds: float
    left: float | None
    closed: bool


@final
class RunStatus:
    """Takes what the events of a run's conversations changed in its `gradebook`, each conversation's in its order.

    Tests are graded by the rules alone, as they end. A scenario that the gradebook does not have is not asked.
    """

    def __init__(self, gradebook: Gradebook) -> None:
        manifest = gradebook.manifest
        self.total = sum(len(plans) for plans in manifest.conversations.values())
        self.ended = 0
        self._gradebook = gradebook
        self._manifest = manifest
        self._seconds: dict[str, float] = defaultdict(float)
        self._spent: dict[str, Spending] = defaultdict(Spending)
        self._scores: dict[str, list[float]] = defaultdict(list)

    def add(self, conversation: str, change: Change) -> EndedTest | None:
        """Take the next change; the test that ended with it, if one did."""
        match change:
            case Turn():
                for part, usage, cost in change.used:
                    self._spent[part] = self._spent[part].plus(usage, cost)
                self._seconds[conversation] += change.seconds or 0.0
            case PlayedTest(status="played"):
                self.ended += 1
                return self._graded(conversation, change)
            case PlayedTest(status="scenario_error"):
                self.ended += 1
                return EndedTest(change.id, None, 0.0, f"the test failed: {change.error}")
        return None

    def figures(self) -> RunProgress:
        """Where the run is now. May be called from another thread."""
        transcripts = list(self._gradebook.transcripts.values())
        times = [each.now for each in transcripts if each.now is not None]
        dollars = [spent.cost_usd for spent in list(self._spent.values())]
        return RunProgress(
            ended=self.ended,
            tests=self.total,
            open=sum(len(each.open) for each in transcripts),
            turns=sum(each.turns for each in transcripts),
            tokens=sum(each.tokens for each in transcripts),
            now=max(times, default=None),
            score=fsum(fmean(scores) for scores in list(self._scores.values())),
            scenarios=len(self._scores),
            used=bool(self._spent),
            cost=total_cost(dollars),
            seconds=fsum(list(self._seconds.values())),
            left=self._left(),
            closed=len(transcripts) == len(self._manifest.conversations) and all(each.closed for each in transcripts),
        )

    def _left(self) -> float | None:
        """About how many seconds of replies are still to come, as long ones as before: a test takes about a span of tokens."""
        done = float(self.ended)
        transcripts = list(self._gradebook.transcripts.values())
        for transcript in transcripts:
            for test in map(transcript.tests.__getitem__, list(transcript.open)):
                begun = test.start if test.start is not None else transcript.tokens
                done += min(0.95, (transcript.tokens - begun) / self._manifest.span)
        share = done / self.total if self.total else 1.0
        at_once = max(1, sum(not each.closed for each in transcripts))
        return fsum(list(self._seconds.values())) * (1 - share) / share / at_once if share >= ENOUGH else None

    def _graded(self, conversation: str, test: PlayedTest) -> EndedTest:
        name, chance = test.definition.scenario, test.definition.chance
        if name not in self._gradebook.scenarios:
            return EndedTest(test.id, None, chance, "graded when the run is over")
        given = self._gradebook.grade(conversation, test)
        if given.score is not None:
            self._scores[name] = [*self._scores[name], given.score]
        return EndedTest(test.id, given.score, chance, given.reason)
