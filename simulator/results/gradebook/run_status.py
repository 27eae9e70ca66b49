"""The progress of a run while it is played: score and cost so far, and the estimated time left."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import datetime
from math import fsum
from statistics import fmean
from typing import Final, NamedTuple, final

from longspan.simulator.journal.transcript import Change, PlayedTest, PlayedTurn, Transcript
from longspan.simulator.play.dry_run import Length
from longspan.simulator.results.gradebook.gradebook import Gradebook
from longspan.simulator.subject.ledger import Spending, total_cost
from longspan.simulator.subject.spending_record import SpendingTotals

__all__ = ["EndedTest", "RunProgress", "RunStatus"]

MIN_SHARE: Final = 0.02
"""The share of a run that must be played before the time left is estimated."""

MIN_SECONDS: Final = 1.0
"""The seconds of replies after which a run's length is computed. A shorter run does not need it."""


@final
class EndedTest(NamedTuple):
    """A test that has ended. `score` is None if rules cannot decide, or if the test is not graded yet."""

    test: str
    score: float | None
    chance: float
    reason: str


@final
class RunProgress(NamedTuple):
    """The progress of a run.

    `ended` and `open` count its `tests`. `score` is the sum of the mean scores of the `scenarios` graded so far, over tests that count.
    `seconds` were spent on replies, and about `left` seconds remain; None if not known yet. `share` is the share of the run's replies so
    far; None if their number is unknown. `cost` is in dollars; None if a price is unknown. `used`: whether any model usage is known.
    `model_tokens` is the number of tokens that models read and wrote.
    """

    ended: int
    tests: int
    open: int
    turns: int
    tokens: int
    now: datetime | None
    score: float
    scenarios: int
    used: bool
    model_tokens: int
    cost: float | None
    seconds: float
    left: float | None
    share: float | None
    closed: bool


@final
class RunStatus:
    """Tracks the progress of a run from the changes in its `gradebook`.

    It grades no test itself: when a test ends, it reads the grade by rules alone from the gradebook. `lengths` returns the lengths of the
    run's conversations by id, or None if they are not known yet. Without it, or until replies have taken some time, they are unknown.
    `spending` returns the total cost of the run so far; without it, only turns count.
    """

    def __init__(
        self,
        gradebook: Gradebook,
        lengths: Callable[[], Mapping[str, Length] | None] | None = None,
        spending: Callable[[], SpendingTotals | None] = lambda: None,
    ) -> None:
        manifest = gradebook.manifest
        self.total = len(manifest.graded)
        self.ended = 0
        self.experiments = len(manifest.experiments)
        self.experiments_ended = 0
        self._gradebook = gradebook
        self._manifest = manifest
        self._lengths = lengths
        self._spending = spending
        self._played: dict[str, Length] = defaultdict(lambda: Length(0, 0))
        self._seconds: dict[str, float] = defaultdict(float)
        self._spent: dict[str, Spending] = defaultdict(Spending)
        self._scores: dict[str, list[float]] = defaultdict(list)

    def add(self, conversation: str, change: Change) -> EndedTest | None:
        """Add the next change of a conversation, and return the test that ended with it, if any. Experiments are counted separately."""
        if (experiment := self._manifest.experiments.get(conversation)) is not None:
            if isinstance(change, PlayedTurn) and change.number >= self._gradebook.transcripts[conversation].before:
                self._spend(change)
            elif isinstance(change, PlayedTest) and change.id == experiment.test and change.status != "open":
                self.experiments_ended += 1
            return None
        match change:
            case PlayedTurn():
                self._spend(change)
                self._seconds[conversation] += change.seconds or 0.0
                if change.reply is not None:
                    asked = self._played[conversation].asked + change.reply.asked
                    trunk = self._manifest.trunks.get(conversation)
                    before = self._played[trunk].tokens if trunk is not None else 0
                    self._played[conversation] = Length((change.message.dealt or 0) - before, asked)
            case PlayedTest(tells=True):
                pass
            case PlayedTest(status="played"):
                self.ended += 1
                return self._grade_ended(conversation, change)
            case PlayedTest(status="scenario_error"):
                self.ended += 1
                return EndedTest(change.id, None, 0.0, f"the test failed: {change.error}")
        return None

    def _spend(self, turn: PlayedTurn) -> None:
        for part, usage, cost in turn.used:
            self._spent[part] = self._spent[part].plus(usage, cost)

    def figures(self) -> RunProgress:
        """Return the current progress. May be called from another thread."""
        transcripts = self._own()
        times = [transcript.now for transcript in transcripts if transcript.now is not None]
        spent, spending = list(self._spent.values()), self._spending()
        seconds = fsum(list(self._seconds.values()))
        lengths = self._lengths() if self._lengths is not None and seconds >= MIN_SECONDS else None
        return RunProgress(
            ended=self.ended,
            tests=self.total,
            open=sum(len(transcript.open) for transcript in transcripts),
            turns=sum(transcript.own_turns for transcript in transcripts),
            tokens=sum(transcript.own_tokens for transcript in transcripts),
            now=max(times, default=None),
            score=fsum(fmean(scores) for scores in list(self._scores.values())),
            scenarios=len(self._scores),
            used=bool(spent),
            model_tokens=sum(part.input_tokens + part.output_tokens for part in spent),
            cost=total_cost([part.cost_usd for part in spent]) if spending is None else spending.cost_usd,
            seconds=seconds,
            left=self._estimate_left() if lengths is None else self._estimate_left_of(lengths, seconds),
            share=self._share_of(lengths) if lengths is not None else None,
            closed=len(transcripts) == len(self._manifest.conversations) and all(transcript.closed for transcript in transcripts),
        )

    def _own(self) -> list[Transcript]:
        """The transcripts of the run's conversations, without its experiments."""
        return [transcript for id, transcript in list(self._gradebook.transcripts.items()) if id in self._manifest.conversations]

    def _clip_to_played(self, lengths: Mapping[str, Length]) -> dict[str, Length]:
        """Return the part of each conversation that has been played. A closed conversation has been played in full."""
        closed = {id for id, transcript in list(self._gradebook.transcripts.items()) if transcript.closed}
        return {id: length if id in closed else self._played.get(id, Length(0, 0)) for id, length in lengths.items()}

    def _share_of(self, lengths: Mapping[str, Length]) -> float:
        """Return the share of the agent's replies so far, since only replies take time; without any to come, the share of tokens."""
        played, every = self._clip_to_played(lengths).values(), lengths.values()
        if asked := sum(length.asked for length in every):
            return min(1.0, sum(length.asked for length in played) / asked)
        return min(1.0, sum(length.tokens for length in played) / sum(length.tokens for length in every))

    def _estimate_left_of(self, lengths: Mapping[str, Length], seconds: float) -> float | None:
        """Estimate the remaining seconds of replies, from the replies so far and the number to come."""
        played, replies = self._clip_to_played(lengths), sum(length.asked for length in list(self._played.values()))
        to_come = sum(max(0, length.asked - played[id].asked) for id, length in lengths.items())
        if replies <= MIN_SHARE * (replies + to_come):
            return None
        return seconds / replies * to_come / self._at_once()

    def _at_once(self) -> int:
        """The number of conversations that are being played."""
        return max(1, sum(not transcript.closed for transcript in self._own()))

    def _estimate_left(self) -> float | None:
        """Estimate the remaining seconds of replies, from the replies so far, assuming that a test takes about a span of tokens."""
        done = float(self.ended)
        transcripts = self._own()
        for transcript in transcripts:
            for test in map(transcript.tests.__getitem__, list(transcript.open)):
                begun = test.start if test.start is not None else transcript.tokens
                # An open test never counts as done, however late it is.
                done += min(0.95, (transcript.tokens - begun) / self._manifest.span)
        share = done / self.total if self.total else 1.0
        return fsum(list(self._seconds.values())) * (1 - share) / share / self._at_once() if share >= MIN_SHARE else None

    def _grade_ended(self, conversation: str, test: PlayedTest) -> EndedTest:
        name, chance = test.definition.scenario, test.definition.chance
        grade = self._gradebook.grade_so_far(conversation, test)
        if grade is None:
            return EndedTest(test.id, None, chance, "graded when the run has finished")
        if grade.score is not None and test.definition.counts is not False:
            self._scores[name] = [*self._scores[name], grade.score]  # a new list, since another thread may be reading the old one
        return EndedTest(test.id, grade.score, chance, grade.reason)
