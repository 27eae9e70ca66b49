"""The Stage that a test plays on. Each call posts a request and waits until the conversation has answered it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from types import coroutine
from typing import Any, Protocol, final

from longspan.simulator.base.errors import ScenarioError
from longspan.simulator.contract.messages import Turn
from longspan.simulator.contract.script import Line, Script, is_date

__all__ = ["Amend", "AskJudge", "Judge", "Request", "Say", "Stage", "Tell", "Verdict", "Wait", "Watch"]

Amend = Callable[[int, str], str]
"""A function that changes the ideal reply of a watched turn, given the turn's number in the watch (from 1) and its ideal reply."""


@final
@dataclass(frozen=True, slots=True)
class Say:
    """A request to say a line. The response is the agent's reply (str)."""

    text: str
    ideal: str
    asks: bool
    needle: bool
    needs: tuple[int, ...] | None
    at: datetime | None = None


@final
@dataclass(frozen=True, slots=True)
class Tell:
    """A request to add a past turn to the agent's history. The response is None."""

    text: str
    reply: str
    at: datetime | None
    needle: bool


@final
@dataclass(frozen=True, slots=True)
class Wait:
    """A request to pause until the next segment of the outline. The response is None."""


@final
@dataclass(frozen=True, slots=True)
class Watch:
    """A request for turn number `turn` of any test, which is turn `count` of this watch.

    `until` is the number of the turn that ends the watch, or None without a limit. The response is the Turn, or None when the watch ends.
    """

    turn: int
    count: int
    until: int | None
    amend: Amend | None


@final
@dataclass(frozen=True, slots=True)
class AskJudge:
    """A request for a judge's decision whether a statement holds for `text`. The response is a Verdict."""

    statement: str
    text: str


Request = Say | Tell | Wait | Watch | AskJudge


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's verdict on a statement. `holds` is None if undecided: there is no judge, or the judge `failed`."""

    holds: bool | None
    why: str
    by: str | None = None
    failed: bool = False


class Judge(Protocol):
    """Decides what rules cannot. It is never the agent under test, and does not know which agent that is."""

    async def judge(self, statement: str, text: str) -> Verdict:
        """Decide whether `statement` holds for `text`. A failure is a Verdict with None, not an exception."""
        ...


@coroutine
def _post(request: Request) -> Generator[Request, Any, Any]:
    """Yield a request to the TestTask that drives this test. The TestTask rejects anything else that the test awaits."""
    return (yield request)


class View(Protocol):
    """The conversation as a Stage sees it: its time and its number of turns."""

    @property
    def now(self) -> datetime: ...
    @property
    def turns(self) -> int: ...


@final
class Stage:
    """The interface of a running test, and the only thing that the test sees.

    Its calls must not overlap, be cancelled by the test, or be mixed with other waits (Trio's or any library's). Each of these raises
    ScenarioError and ends only that test. When the conversation ends, pending calls are cancelled.
    """

    def __init__(self, script: Script, seed: str, view: View, award: Callable[[float, str], None], needles: int = 0) -> None:
        self._script = script
        self._view = view
        self._award = award
        self._needles = needles
        self.random = Random(f"{seed}/play")
        """This test's random number generator. The same seed gives the same numbers."""

    @property
    def now(self) -> datetime:
        """The conversation's virtual date and time."""
        return self._view.now

    @property
    def facts(self) -> Mapping[str, Any]:
        """The script's facts."""
        return self._script.facts

    def cues(self) -> Iterator[tuple[Line, bool]]:
        """Yield the script's lines, each with whether to wait before it."""
        for number, line in enumerate(self._script.lines):
            yield line, number > 0 and not line.together

    async def say(self, text: str, *, needle: bool = True, ideal: str = "OK.") -> str:
        """Say `text` and return the agent's reply. Pass `needle=False` if no question needs this line."""
        return await self._say(Say(_text(text), _text(ideal, silent=True), asks=False, needle=needle, needs=None))

    async def ask(
        self, text: str, *, needs: Sequence[int] | None = None, ideal: str, needle: bool = False, at: datetime | None = None
    ) -> str:
        """Ask `text` and return the agent's reply.

        `needs` are the numbers of the needles that the answer relies on, counted from 0 as this test said them; None means all so far. If
        the test has a trunk, the trunk's needles come before its own. Pass `needle=True` if later questions need this question or its
        reply. `at` is the question's virtual date, only for a script that is `alone`. The clock jumps to it unless it has passed.
        """
        wanted = None if needs is None else tuple(needs)
        if wanted is not None and any(not isinstance(n, int) or not 0 <= n < self._needles for n in wanted):
            raise ScenarioError(f"a question can need needles 0 to {self._needles - 1}, got {list(wanted)}")
        if at is not None and not (is_date(at) and self._script.alone):
            raise ScenarioError(f"a question is asked at a datetime without a time zone, in a script that is alone, got {at!r:.80}")
        return await self._say(Say(_text(text), _text(ideal, silent=True), asks=True, needle=needle, needs=wanted, at=at))

    async def tell(self, text: str, reply: str, *, at: datetime | None = None, needle: bool = True) -> None:
        """Add a past turn to the agent's history: the user said `text`, and `reply` was the answer. The agent is not asked.

        `at` is the turn's virtual date and time. The clock jumps to it, but never backwards: if it has passed, the turn takes place now.
        The next segment must declare the turn and its date.
        """
        if at is not None and not is_date(at):
            raise ScenarioError(f"a turn is told at a datetime without a time zone, got {at!r:.80}")
        await _post(Tell(_text(text), _text(reply, silent=True), at, needle))
        self._needles += needle

    async def _say(self, request: Say) -> str:
        reply: str = await _post(request)
        self._needles += request.needle
        return reply

    async def wait(self) -> None:
        """Wait until the next segment may begin: at its place in the span, after all else that its outline requires."""
        await _post(Wait())

    def watch(self, *, turns: int | None = None, amend: Amend | None = None) -> Watcher:
        """Iterate over the next turns of all tests and filler, at most as many as the last segment declares.

        The watch ends after `turns` turns. With None, the last segment decides. With "next", the watch ends when the next segment is due,
        which then needs no `wait`. With "rest", it ends when no other test is open or can open. `amend` changes the ideal reply of each
        watched turn. Messages that the test says during a counted watch wait for its end.
        """
        if turns is not None and turns < 1:
            raise ScenarioError(f"watch needs turns >= 1, got {turns}")
        return Watcher(self._view.turns, turns, amend)

    def award(self, points: float, why: str) -> None:
        """Award `points` (of 1 in total) to this test for the last turn, with a reason that a person can check."""
        if not 0 <= points <= 1:
            raise ScenarioError(f"points must be in [0, 1], got {points}")
        self._award(points, why)

    async def judge(self, statement: str, text: str) -> Verdict:
        """Have the run's judge decide whether `statement` holds for `text`. Without a judge, the verdict's `holds` is None."""
        verdict: Verdict = await _post(AskJudge(_text(statement), _text(text, silent=True)))
        return verdict


@final
class Watcher:
    """The iterator of `Stage.watch`. It is not an async generator, so that a `break` ends the watch immediately."""

    def __init__(self, begin: int, turns: int | None, amend: Amend | None) -> None:
        self._begin = self._next = begin
        self._until = None if turns is None else begin + turns
        self._amend = amend

    def __aiter__(self) -> Watcher:
        return self

    async def __anext__(self) -> Turn:
        if self._until is not None and self._next >= self._until:
            raise StopAsyncIteration
        turn: Turn | None = await _post(Watch(self._next, self._next - self._begin + 1, self._until, self._amend))
        if turn is None:
            raise StopAsyncIteration
        self._next += 1
        return turn


def _text(text: str, *, silent: bool = False) -> str:
    """Check that `text` can be written to a journal and, unless `silent`, is not blank."""
    if not isinstance(text, str) or not (silent or text.strip()):
        raise ScenarioError(f"a line must be a string that is not blank, got {text!r:.80}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ScenarioError(f"a line must be valid Unicode, got {text!r:.80}") from error
    return text
