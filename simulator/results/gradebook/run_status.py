"""The progress of a run while it is played: score and cost so far, and the estimated time left."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
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


READING_BASE: Final = 10
WRITING: Final = 5
"""A reply takes about as long as reading READING_BASE tokens, its prompt's fresh tokens, and WRITING times its own tokens. Measured with a
model of 1.5 billion parameters on two cores; half or twice of either changes the estimate little."""


@final
class RecentReplies(NamedTuple):
    """Weighted sums over the replies so far. The weight of a reply is the square of its number, so that the sums follow a busy machine.

    `work` is in tokens read (see WRITING). `free`: whether all of them used a model and cost nothing, as with a model of this machine.
    """

    replies: int = 0
    weight: float = 0.0
    seconds: float = 0.0
    work: float = 0.0
    written: float = 0.0
    free: bool = True

    def plus(self, turn: PlayedTurn) -> RecentReplies:
        used = (turn.reply.usage if turn.reply is not None else None) or {}
        read, written = used.get("input_tokens", 0) - used.get("cached_tokens", 0), used.get("output_tokens", 0)
        weight = float(self.replies + 1) ** 2
        return RecentReplies(
            self.replies + 1,
            self.weight + weight,
            self.seconds + weight * (turn.seconds or 0.0),
            self.work + weight * (READING_BASE + read + WRITING * written),
            self.written + weight * written,
            self.free and bool(used) and turn.dollars == 0,
        )

    def estimate_seconds(self, replies: int, fresh: Sequence[int]) -> float:
        """Estimate the seconds of the next `replies` replies. `fresh` has the fresh tokens of their prompts; empty if unknown."""
        if not fresh:
            return replies * self.seconds / self.weight
        return self.seconds / self.work * fsum(READING_BASE + read + WRITING * self.written / self.weight for read in fresh)


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
    `spending` returns the total cost of the run so far; without it, only turns count. If replies cost nothing, `predict` is called with
    their mean length in tokens, and returns the fresh tokens of each prompt by conversation; empty while they are unknown.
    """

    def __init__(
        self,
        gradebook: Gradebook,
        lengths: Callable[[], Mapping[str, Length] | None] | None = None,
        spending: Callable[[], SpendingTotals | None] = lambda: None,
        predict: Callable[[int], Mapping[str, Sequence[int]]] = lambda replies: {},
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
        self._predict = predict
        self._recent = RecentReplies()
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
                    if change.reply.asked:
                        self._recent = self._recent.plus(change)
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
            left=self._estimate_left() if lengths is None else self._estimate_left_of(lengths),
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

    def _estimate_left_of(self, lengths: Mapping[str, Length]) -> float | None:
        """Estimate the remaining seconds of replies, from the replies so far and those to come."""
        played, recent = self._clip_to_played(lengths), self._recent
        to_come = {id: max(0, length.asked - played[id].asked) for id, length in lengths.items()}
        if recent.replies <= MIN_SHARE * (recent.replies + sum(to_come.values())):
            return None
        fresh = self._predict(round(recent.written / recent.weight)) if recent.free else {}
        seconds = (recent.estimate_seconds(left, fresh.get(id, ())[-left:]) for id, left in to_come.items() if left)
        return fsum(seconds) / self._at_once()

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
