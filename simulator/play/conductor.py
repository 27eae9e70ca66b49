"""The conductor: decides who speaks next, so that every test keeps its span with as little filler as possible.

Its decisions depend on the tests, the span and the filler alone. A test is charged the figures of its outline, and an agent's reply a
constant, so every agent gets the same conversation. Positions are in charged tokens.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Final, NamedTuple, final

from longspan.simulator.contract.scenario import Test
from longspan.simulator.contract.script import GAP, LAST, Segment
from longspan.simulator.play.look_ahead import Job, plays_out

__all__ = ["CHARGE", "Conductor", "End", "Fill", "Phase", "Speak", "TestState", "segment_cost"]

CHARGE: Final = 20
"""The tokens charged for an agent's reply of any length. In published logs, the medians range from 3 to 133."""
SPARE: Final = 60
"""The tokens of its span that a test plans to leave unused, because filler may be a little longer than the gap that it fills."""
URGENT: Final = 0.1
"""The share of the span: a test with less slack is urgent, and may jump in time."""
HURRIED: Final = 0.05
"""The share of the span: a test with less slack may speak before others open."""
CROWD: Final = 10.0
"""How many times their own length an early placed test's needles may take, together with other tests' needles between them."""
HEAVY: Final = 0.4
"""A test whose segments fill more than this share of its span is heavy, and opens before all others."""
SHORT: Final = 60
"""The tokens of a filler message that only has to pass a turn."""


def segment_cost(segment: Segment) -> int:
    """Return the tokens charged for a segment."""
    return segment.tokens + segment.replies * CHARGE


class Phase(Enum):
    """The progress of a test: not opened yet, open, or ended except for its farewell."""

    QUEUED = "queued"
    OPEN = "open"
    LEAVING = "leaving"


@final
@dataclass(slots=True, eq=False)
class TestState:
    """A test as the conductor sees it. Only the conductor changes it.

    `said`: the number of segments of `outline` said so far. `start`: the position of the first. The next segment must wait for `due`,
    `due_turn` and `due_time`. `due_turn` is infinite while the test watches until no other test is left. `watching`: until `due_turn` it
    may watch a bounded number of turns. `farewell`: the last segment of its outline once it has ended, if another test of its scenario is
    still to come.
    """

    test: Test
    outline: Sequence[Segment]
    farewell: Segment | None = None
    phase: Phase = Phase.QUEUED
    said: int = 0
    start: int = 0
    due: int = 0
    due_turn: float = 0
    due_time: datetime = datetime.min
    watching: bool = False
    topics: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.topics = self.test.scenario.topics | {self.test.scenario.name}

    @property
    def pending(self) -> bool:
        """Whether the test is open and has more segments with a place in its span."""
        return self.phase is Phase.OPEN and self.said < len(self.outline) and self.due_turn < math.inf


class Speak(NamedTuple):
    """The test says its next segment, and opens if it was not open. `jump`: the virtual clock first jumps there."""

    state: TestState
    jump: datetime | None = None


class End(NamedTuple):
    """The test has said all of its outline, and its watch is over."""

    state: TestState


class Fill(NamedTuple):
    """Filler of about `tokens` tokens. `asked`: the agent answers it, because a bounded watch is running."""

    tokens: int
    asked: bool


@final
class Conductor:
    """Schedules tests over a conversation. Each test has `span` tokens from its first needle to its last question.

    The caller asks for the `next` step, takes it, and reports it: `speaks` and `finish_segment`, `ends`, or `passes`. Without `paced` (an
    isolated test, or a history with its questions), waits for tokens end immediately, and tests open in the given order.
    """

    def __init__(self, states: Iterable[TestState], span: int, *, paced: bool = True) -> None:
        self.span = span
        self.position = 0
        self._step = 0  # tokens charged so far in the current step, which `position` does not count yet
        self._open: list[TestState] = []
        self._paced = paced
        self._last: TestState | None = None
        self._reopens: dict[str, float] = {}
        self._queues: dict[str, deque[TestState]] = {}
        self._places: dict[TestState, int] = {}
        self._left: dict[TestState, tuple[int, list[Job]]] = {}
        for place, state in enumerate(sorted(states, key=self._rank) if paced else states):
            self._places[state] = place
            self._queues.setdefault(state.test.scenario.name, deque()).append(state)

    def _rank(self, state: TestState) -> tuple[int, bool, int]:
        """Return a sort key for opening tests.

        Heavy tests come first, by their largest segment. The rest follow in the order they were made. Tests with one segment come last,
        when most others are open.
        """
        heavy = sum(segment.tokens for segment in state.outline) > HEAVY * self.span
        weight = max(segment.tokens for segment in state.outline) if heavy else 0
        return -weight, len(state.outline) == 1, state.test.order

    @property
    def open(self) -> Sequence[TestState]:
        """The tests that are open or still have to say farewell, in the order they were made."""
        return self._open

    @property
    def dealt(self) -> int:
        """The position within the step that is being taken."""
        return self.position + self._step

    # Reports from the caller.

    def charges(self, tokens: int) -> None:
        """Charge a turn of the current step. Affects no decision: after the step, its outline determines the position."""
        self._step += tokens

    def passes(self, tokens: int) -> None:
        """Charge a turn that belongs to no test."""
        self.position += tokens
        self._step = 0

    def speaks(self, state: TestState) -> Segment:
        """Give a test the floor, and open it if it is not open. Return the segment to say."""
        self._last = state
        if state.phase is Phase.QUEUED:
            scenario = state.test.scenario.name
            self._queues[scenario].remove(state)
            if not self._queues[scenario]:
                del self._queues[scenario]
            state.phase, state.start = Phase.OPEN, self.position
            self._reopens[scenario] = self.position + LAST * self.span
            self._open = sorted([*self._open, state], key=lambda state: state.test.order)
        return state.outline[state.said]

    def finish_segment(self, state: TestState, *, turn: int, now: datetime) -> None:
        """Take the floor back before turn number `turn` at virtual time `now`, after the segment has been said."""
        segment = state.outline[state.said]
        self.position += segment_cost(segment)
        self._step = 0
        state.said += 1
        if state.phase is Phase.LEAVING:
            self._open.remove(state)
            return
        after = state.outline[state.said] if state.said < len(state.outline) else Segment(0, 0, 0)
        apart = max(after.after_tokens, math.ceil(after.gap * self.span))
        due = max(state.start + math.ceil((after.at or 0) * self.span), self.position + apart)
        state.due = due if self._paced else 0
        state.due_time = max([now + after.pause, *filter(None, after.told[:1])])
        watched = segment.watch if isinstance(segment.watch, int) else 0
        state.watching = watched > 0
        state.due_turn = math.inf if segment.watch == "rest" else turn + max(watched, after.after_turns)

    def ends(self, state: TestState) -> None:
        """End a test, except for its farewell if another test of its scenario is still to come."""
        if state.farewell is not None and state.test.scenario.name in self._queues:
            state.phase, state.outline = Phase.LEAVING, [*state.outline, state.farewell]
        else:
            self._open.remove(state)

    # Who speaks next.

    def next(self, turn: int, now: datetime) -> Speak | End | Fill | None:
        """Return the next step before turn number `turn`, at virtual time `now`, or None at the end."""
        done = (state for state in self._open if state.phase is Phase.OPEN and state.said == len(state.outline) and state.due_turn <= turn)
        if state := next(done, None):
            return End(state)
        if state := self._only(turn):
            return _speak(state, now)
        watched = any(state.watching and turn < state.due_turn for state in self._open)  # a watch counts only turns that the agent answers
        latest = {state: self._latest(state) for state in self._open if state.pending}
        urgent = {state for state, at in latest.items() if at <= self.position + URGENT * self.span}
        ready = [state for state in latest if state.due <= self.position and state.due_turn <= turn and not (watched and _tells(state))]
        ready.sort(key=lambda state: (state is self._last, latest[state], state.test.order))
        timely = [state for state in ready if state.due_time <= now or state in urgent]
        early = sorted((state for state in ready if state not in timely), key=lambda state: (state.due_time, state.test.order))
        hurried = any(latest[state] <= self.position + HURRIED * self.span for state in timely)
        if not hurried and (state := self._next_to_open(watched)):
            return _speak(state, now)
        if state := next(filter(self._may_speak, timely), None):
            return _speak(state, now)
        if hurried and (state := self._next_to_open(watched)):
            return _speak(state, now)
        if state := next(filter(self._may_say_farewell, self._open), None):
            return Speak(state)
        if state := next(filter(self._may_speak, early), None):
            return _speak(state, now)
        dues = [state.due for state in latest if state.due > self.position]
        if ready and not (dues and plays_out(min(dues), self._chains())):
            return _speak((timely or early)[0], now)  # not all spans can be kept any more, and waiting would make it worse
        return self._pass(turn, now, dues, watched)

    def _only(self, turn: int) -> TestState | None:
        """Return the last remaining test if nothing keeps it waiting. A shortcut for histories of thousands of segments."""
        if self._paced or self._queues or len(self._open) > 1:
            return None
        return next((state for state in self._open if state.pending and state.due_turn <= turn), None)

    def _pass(self, turn: int, now: datetime, dues: Sequence[int], asked: bool) -> Speak | End | Fill | None:
        """Return the step if no test may speak: filler, the end of an unbounded watch, a farewell, or None at the end."""
        if asked or any(state.pending and turn < state.due_turn for state in self._open):
            return Fill(min([SHORT, *(due - self.position for due in dues)]), asked)
        if dues:
            return Fill(min(dues) - self.position, asked=False)
        if watcher := next((state for state in self._open if state.due_turn == math.inf), None):
            watcher.due, watcher.due_turn = self.position, turn
            return self.next(turn, now)
        farewell = next((state for state in self._open if state.phase is Phase.LEAVING), None)
        return Speak(farewell) if farewell else None

    def _latest(self, state: TestState) -> float:
        """Return the latest position where a test can start its next segment and keep its span."""
        job = self._still(state)[0]
        return job.deadline - job.cost

    def _may_speak(self, state: TestState) -> bool:
        """Return whether everything else still fits after this test's next segment."""
        return plays_out(self.position + segment_cost(state.outline[state.said]), self._chains(without=state))

    def _may_say_farewell(self, state: TestState) -> bool:
        if state.phase is not Phase.LEAVING or state is self._last:
            return False
        return plays_out(self.position + segment_cost(state.outline[state.said]), self._chains())

    def _next_to_open(self, watched: bool) -> TestState | None:
        """Return the test to open now, or one whose farewell must come first, or None if none may open.

        No test that begins with a past turn opens while a bounded number of turns is `watched`.

        The scenario with the most tests left goes first. The longest queue determines the conversation's length, so shorter queues must not
        take its room.
        """
        taken = frozenset[str]().union(*(state.topics for state in self._open if state.phase is Phase.OPEN))
        leaving = [state for state in self._open if state.phase is Phase.LEAVING]
        free = [queue for queue in self._queues.values() if queue[0].topics.isdisjoint(taken) and self._reopens_by(queue[0])]
        longest = max(map(len, free), default=0)
        for state in sorted((queue[0] for queue in free if len(queue) == longest), key=self._places.__getitem__):
            if watched and _tells(state):
                continue
            before = [other for other in leaving if state.topics & other.topics]
            if self._may_open(state, self.position + sum(segment_cost(other.outline[other.said]) for other in before)):
                return before[0] if before else state
        return None

    def _reopens_by(self, state: TestState) -> bool:
        """Return whether the previous test of its scenario has used nearly all of its span, or there is nothing else to wait for."""
        return self.position >= self._reopens.get(state.test.scenario.name, 0) or not any(other.pending for other in self._open)

    def _may_open(self, state: TestState, position: int) -> bool:
        """Return whether every span can be kept, by simulating all remaining segments."""
        if not any(other.pending for other in self._open):
            return True
        return plays_out(position, [*self._chains(), self._chain(state, 0, position)], first=True)

    # The segments still to be said.

    def _chains(self, without: TestState | None = None) -> list[list[Job]]:
        """Return the remaining jobs of each open test. For the test `without`, only the jobs after its next segment."""
        return [
            self._chain(state, state.said + 1, state.start) if state is without else self._still(state)
            for state in self._open
            if state.pending
        ]

    def _still(self, state: TestState) -> list[Job]:
        """Return the remaining jobs of an open test. Cached until the test speaks, because every turn needs them."""
        said, jobs = self._left.get(state, (-1, []))
        if said != state.said:
            jobs = self._chain(state, state.said, state.start)
            self._left[state] = state.said, jobs
        return jobs

    def _chain(self, state: TestState, first: int, start: float) -> list[Job]:
        """Return a test's segments from `first` on as jobs, in order. Each deadline leaves room for later segments."""
        deadline = start + self.span - SPARE + CHARGE  # a span ends with the last question, not with its reply
        needed = sum(map(segment_cost, state.outline))
        jobs = []
        for segment in reversed(state.outline[first:]):
            if segment.by < 1:  # an early deadline, relaxed so that other tests' needles fit in between
                by = max(segment.by * self.span, min(CROWD * needed, (LAST - GAP) * self.span))
                deadline = min(deadline, start + by)
            gap = segment.gap * self.span
            jobs.append(Job(start + (segment.at or 0) * self.span, deadline, segment_cost(segment), gap))
            deadline -= segment_cost(segment) + gap
            needed -= segment_cost(segment)
        return jobs[::-1]


def _tells(state: TestState) -> bool:
    """Return whether the test's next segment begins with a past turn, which the agent does not answer."""
    return bool(state.outline[state.said].told)


def _speak(state: TestState, now: datetime) -> Speak:
    return Speak(state, state.due_time if state.due_time > now else None)
