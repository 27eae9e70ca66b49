"""The conductor: decides who speaks next, so that every test keeps its span with as little filler as possible.

It only decides. It knows tokens, virtual time and what each test still has to say; the conversation does the rest.

Spans are kept by looking ahead. What the open tests still have to say is a list of jobs: a segment may start at its release,
must finish by its deadline, and costs its tokens plus the expected replies. Positions are in tokens.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple, final

from longspan.simulator.scenario import Test
from longspan.simulator.script import LAST, Segment

__all__ = ["Conductor", "Fill", "Release", "Speak", "TestState"]

OPENING_MARGIN: Final = 4.0
"""Standard deviations of reply length kept spare when a test opens, times the square root of the replies to come."""
SPEAKING_MARGIN: Final = 2.0
"""The same when an open test speaks."""
AIM: Final = 0.99
"""The largest share of its span that a test is planned to take."""
URGENT: Final = 0.1
"""The share of the span below which a test's slack makes a time jump due."""
HURRIED: Final = 0.05
"""The share of the span below which a test's slack lets it speak before others open."""
CROWD: Final = 10.0
"""How many times its own length the needles of an early placed test may take, said among those of others."""
LIGHT: Final = 0.08
"""If the remaining jobs of open tests cost less than this share of the span, they need no detailed plan."""
HEAVY: Final = 0.4
"""A test that fills more than this share of its span is heavy: it opens before all others."""
SHORT: Final = 60
"""Tokens of a filler message that is said to pass turns, not tokens."""


FAREWELL: Final = Segment(0, 40, 1)
"""The expected size of a farewell."""


@final
@dataclass(slots=True, eq=False)
class TestState:
    """A test as the conductor sees it.

    `segment` is the next segment of `outline` to be said, `start` the position of the first line. A waiting test may speak
    when all of `due`, `due_turn` and `due_time` are reached. `watching`: it watches turns, up to turn number `until` (None if
    unbounded). `leaving`: it has ended except for its farewell.
    """

    test: Test
    outline: Sequence[Segment]
    segment: int = 0
    start: int = 0
    due: int = 0
    due_turn: int = 0
    due_time: datetime = datetime.min
    speaking: bool = False
    watching: bool = False
    until: int | None = None
    leaving: bool = False
    topics: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.topics = self.test.scenario.topics | {self.test.scenario.name}

    @property
    def pending(self) -> bool:
        """Whether it has more to say, after a wait."""
        return not self.watching and not self.leaving


class Speak(NamedTuple):
    """The test has the floor; it opens if it was not open. `jump`: the virtual clock first jumps there."""

    state: TestState
    jump: datetime | None = None


class Fill(NamedTuple):
    """Filler of about `tokens` tokens. `asked`: the agent answers it (a bounded watch runs)."""

    tokens: int
    asked: bool


class Release(NamedTuple):
    """Nothing else is open or can open: the unbounded watch of the test ends."""

    state: TestState


class Job(NamedTuple):
    """A segment still to be said, from `release` to `deadline`, with `replies` replies included in its `cost`."""

    release: float
    deadline: float
    cost: float
    replies: int


@final
@dataclass(slots=True)
class _Replies:
    """The length of this agent's replies of one kind: mean and standard deviation of the last forty, in tokens. Starts with a guess."""

    last: deque[int] = field(default_factory=lambda: deque(maxlen=40))
    mean: float = 45.0
    deviation: float = 27.0

    def add(self, tokens: int) -> None:
        self.last.append(tokens)
        known, total = len(self.last), sum(self.last)
        if known < 8:
            self.mean, self.deviation = (2 * 45 + total) / (known + 2), 20.0
        else:
            squares = sum(each * each for each in self.last)
            self.mean, self.deviation = total / known, math.sqrt(known * squares - total * total) / known


@final
class Conductor:
    """Schedules tests over a conversation in which each has `span` tokens, first needle to last question.

    Without `paced` (an isolated test), waits for tokens end at once.
    """

    def __init__(self, states: Iterable[TestState], span: int, *, paced: bool = True) -> None:
        self.span = span
        self.open: list[TestState] = []
        self._paced = paced
        self._replies, self._remarks, self._answers = _Replies(), _Replies(), _Replies()
        self._last: TestState | None = None
        self._reopens: dict[str, float] = {}
        self._queues: dict[str, deque[TestState]] = {}
        self._places: dict[TestState, int] = {}
        for place, state in enumerate(sorted(states, key=self._rank)):
            self._places[state] = place
            self._queues.setdefault(state.test.scenario.name, deque()).append(state)

    def _rank(self, state: TestState) -> tuple[int, bool, int]:
        """The order in which tests should open: heavy ones first, the largest segment before the others; then the rest as
        they were made; but those said in one go last, when most others are open."""
        heavy = sum(segment.tokens for segment in state.outline) > HEAVY * self.span
        weight = max(segment.tokens for segment in state.outline) if heavy else 0
        return -weight, len(state.outline) == 1, state.test.order

    # What the conversation tells.

    def replied(self, tokens: int, *, question: bool) -> None:
        """Record the length of a reply, to a question or another message, in tokens."""
        self._replies.add(tokens)
        if question:
            self._answers.add(tokens)
        else:
            self._remarks.add(tokens)

    def speaks(self, state: TestState, position: int) -> None:
        """Give the test the floor at `position`, and open it if it is not open."""
        if state not in self.open:
            scenario = state.test.scenario.name
            queue = self._queues[scenario]
            queue.remove(state)
            if not queue:
                del self._queues[scenario]
            state.start = position
            self._reopens[scenario] = position + LAST * self.span
            self.open.append(state)
            self.open.sort(key=lambda state: state.test.order)
        self._last = state

    def waits(self, state: TestState, *, tokens: int, turn: int, time: datetime) -> None:
        """Make the test wait until position `tokens`, turn number `turn` and virtual time `time` are reached."""
        state.segment += 1
        state.due = tokens if self._paced else 0
        state.due_turn = turn
        state.due_time = time

    def ends(self, state: TestState) -> bool:
        """End the test. Return whether another test of its scenario is still to come."""
        self.open.remove(state)
        return state.test.scenario.name in self._queues

    # Who speaks next.

    def next(self, position: int, turn: int, now: datetime) -> Speak | Fill | Release | None:
        """Return the next step at token `position`, before turn number `turn`, at virtual time `now`, or None at the end."""
        ready = self._ready(position, turn, now)
        timely = [state for state in ready if state.due_time <= now or self._urgent(state, position)]
        unhurried = not any(state.speaking or self._latest(state) <= position + HURRIED * self.span for state in timely)
        if unhurried and (state := self._opening(position)):
            return self._speak(state, now)
        for state in timely:
            if self._may_speak(state, position):
                return self._speak(state, now)
        if timely and not _feasible(position, self._jobs(), self._spare(SPEAKING_MARGIN)):
            return self._speak(timely[0], now)  # too late for all: holding back would make everything later
        if not unhurried and (state := self._opening(position)):
            return self._speak(state, now)
        for state in self.open:
            if state.leaving and state is not self._last and self._may_speak(state, position):
                return Speak(state)
        for state in sorted((state for state in ready if state not in timely), key=lambda state: (state.due_time, state.test.order)):
            if self._may_speak(state, position):
                return self._speak(state, now)
        dues = [state.due for state in self.open if state.pending and state.due > position]
        if ready and (not dues or not _feasible(min(dues), self._jobs(), self._spare(SPEAKING_MARGIN))):
            return self._speak(ready[0], now)  # a jump left for last would starve its test
        return self._pass(position, turn, dues)

    def _pass(self, position: int, turn: int, dues: list[int]) -> Speak | Fill | Release | None:
        """Return the step when no test may speak: filler, the end of an unbounded watch, or None at the end."""
        asked = any(state.watching and state.until is not None for state in self.open)
        short = asked or any(state.pending and state.due_turn > turn for state in self.open)
        if short:
            return Fill(min([SHORT, *(due - position for due in dues)]), asked)
        if dues:
            return Fill(min(dues) - position, asked=False)
        if watcher := next((state for state in self.open if state.watching), None):
            return Release(watcher)
        farewell = next((state for state in self.open if state.leaving), None)
        return Speak(farewell) if farewell else None

    @staticmethod
    def _speak(state: TestState, now: datetime) -> Speak:
        return Speak(state, state.due_time if state.due_time > now else None)

    def _ready(self, position: int, turn: int, now: datetime) -> list[TestState]:
        """Return open tests that have stopped waiting, except for a time: least slack first, the last speaker behind the others."""
        ready = [state for state in self.open if state.speaking or (state.pending and state.due <= position and state.due_turn <= turn)]

        def rank(state: TestState) -> tuple[bool, bool, float, int]:
            later = state.due_time > now and not self._urgent(state, position)
            return state is self._last, later, self._latest(state), state.test.order

        return sorted(ready, key=rank)

    def _latest(self, state: TestState) -> float:
        """Return the latest position at which a test can start its next segment and keep its span."""
        jobs = self._chain(state, state.segment, state.start)
        if not jobs:
            return 0.0
        by = state.start + state.outline[state.segment].by * self.span
        return min(jobs[0].deadline, by) - jobs[0].cost

    def _urgent(self, state: TestState, position: int) -> bool:
        return self._latest(state) <= position + URGENT * self.span

    def _may_speak(self, state: TestState, position: int) -> bool:
        """Return whether everything else still fits after this test's next segment."""
        if state.speaking or state.segment >= len(state.outline):
            return True
        after = position + self._cost(FAREWELL if state.leaving else state.outline[state.segment])
        return _feasible(after, self._jobs(without=state), self._spare(SPEAKING_MARGIN))

    def _candidates(self) -> list[TestState]:
        """Return the next test of each scenario, in the order in which they should open."""
        heads = [queue[0] for queue in self._queues.values()]
        return sorted(heads, key=self._places.__getitem__)

    def _opening(self, position: int) -> TestState | None:
        """Return the test to open at `position`, or one whose farewell must come first, or None if none may open."""
        taken = frozenset[str]().union(*(state.topics for state in self.open if not state.leaving))
        for state in self._candidates():
            if state.topics.isdisjoint(taken) and self._may_open(state, position):
                return self._blocking(state) or state
        return None

    def _may_open(self, state: TestState, position: int) -> bool:
        if not any(other.pending for other in self.open):
            return True
        return position >= self._reopens.get(state.test.scenario.name, 0) and self._plan(state, position)

    def _blocking(self, state: TestState) -> TestState | None:
        """Return a test that must say its farewell before this one can open, or None."""
        return next((other for other in self.open if other.leaving and state.topics & other.topics), None)

    # The look-ahead.

    def _cost(self, segment: Segment) -> float:
        remarks = segment.replies - segment.answers
        return segment.tokens + remarks * self._remarks.mean + segment.answers * self._answers.mean

    def _spare(self, margin: float) -> float:
        return margin * self._replies.deviation

    def _chain(self, state: TestState, first: int, start: float) -> list[Job]:
        """A test's segments from `first` on, in order; each deadline leaves room for the segments after it."""
        deadline = start + AIM * self.span + self._answers.mean  # a span ends with the last question, not with its reply
        jobs = []
        for number in range(len(state.outline) - 1, first - 1, -1):
            segment = state.outline[number]
            cost = self._cost(segment)
            if segment.by < 1:  # never asking for more than can be done among others
                by = max(segment.by * self.span, CROWD * sum(map(self._cost, state.outline[: number + 1])))
                deadline = min(deadline, start + by)
            jobs.append(Job(start + segment.at * self.span, deadline, cost, segment.replies))
            deadline -= cost
        return jobs[::-1]

    def _jobs(self, without: TestState | None = None) -> list[Job]:
        """All that open tests have still to say, by release; of `without`, only what follows its next segment."""
        return sorted(
            job for state in self.open if state.pending for job in self._chain(state, state.segment + (state is without), state.start)
        )

    def _plan(self, state: TestState, position: int) -> bool:
        """Play out on paper all that is still to be said if the test opened now, one segment after another.

        True when every span is kept with a margin.
        """
        spare = self._spare(OPENING_MARGIN)
        chains = [self._chain(other, other.segment, other.start) for other in self.open if other.pending]
        chains.append(self._chain(state, 0, position))
        chains = [chain for chain in chains if chain]
        jobs = sorted(job for chain in chains for job in chain)
        if not _feasible(position, jobs, spare):
            return False
        if sum(job.cost for job in jobs) < LIGHT * self.span:
            return True
        return _plays_out(float(position), chains, spare)


def _plays_out(position: float, chains: list[list[Job]], spare: float) -> bool:
    """Whether the chains can be said one whole segment after another, the last chain's first segment before all others.

    At each step the most urgent segment that leaves all others feasible goes first.
    """
    heads = [chains[-1][0]]
    forced = True
    while chains:
        for head in heads:
            rest = sorted(job for chain in chains for job in chain if job is not head)
            if _feasible(position + head.cost, rest, spare):
                break
        else:
            later = [chain[0].release for chain in chains if chain[0].release > position]
            if forced or not later:
                return False
            position = min(later)
            heads = _released(chains, position)
            continue
        position += head.cost
        if position + spare > head.deadline:
            return False
        chains = [chain[1:] if chain[0] is head else chain for chain in chains]
        chains = [chain for chain in chains if chain]
        heads = _released(chains, position)
        forced = False
    return True


def _released(chains: Iterable[list[Job]], position: float) -> list[Job]:
    """The chains' next jobs that may start at `position`, least slack first."""
    return sorted((chain[0] for chain in chains if chain[0].release <= position), key=lambda job: job.deadline - job.cost)


def _feasible(position: float, jobs: Sequence[Job], spare: float) -> bool:
    """Whether all jobs (sorted by release) can meet their deadlines from `position` on, if segments could be split:
    the earliest deadline goes first, and `spare` times the root of the replies so far must be left at each deadline."""
    waiting: list[tuple[float, float, int]] = []
    ahead, replies = 0, 0
    while ahead < len(jobs) or waiting:
        if not waiting and jobs[ahead].release > position:
            position, replies = jobs[ahead].release, 0
        while ahead < len(jobs) and jobs[ahead].release <= position:
            heapq.heappush(waiting, jobs[ahead][1:])
            ahead += 1
        deadline, cost, count = heapq.heappop(waiting)
        release = jobs[ahead].release if ahead < len(jobs) else math.inf
        if position + cost > release:
            heapq.heappush(waiting, (deadline, position + cost - release, count))
            position = release
            continue
        position += cost
        replies += count
        if position + spare * math.sqrt(replies) > deadline:
            return False
    return True
