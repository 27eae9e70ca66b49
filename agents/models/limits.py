"""How fast a provider may be asked: one limiter for all in the process who ask it, and the one policy of asking again."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import inf
from typing import Final, TypeVar, final

import trio

from longspan.agents.base import AgentError
from longspan.simulator.sweeps.shared_limits import Gate

__all__ = ["AT_ONCE", "Limiter", "SharedLimiter", "Slot", "TransientError"]

Value = TypeVar("Value")

AT_ONCE: Final = 100
"""Requests at once, unless told otherwise."""

MINUTE: Final = 60.0

FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
"""Seconds that nobody asks after the provider said that it is overloaded, without saying for how long (Retry-After): the
first time; doubled each time that it says so again; and at most, also where it asks for more."""


class TransientError(Exception):
    """A request failed, and may succeed when it is made again.

    `overload`: the provider has too much to do, so all who ask it slow down. `attempts`: how often it is tried at most
    (inf: for as long as the turn has time). `retry_after`: seconds that the provider asked to wait.
    """

    def __init__(self, why: str, *, overload: bool = False, attempts: float = 6, retry_after: float | None = None) -> None:
        super().__init__(why)
        self.overload = overload
        self.attempts = attempts
        self.retry_after = retry_after


@final
@dataclass(slots=True, eq=False)
class Slot:
    """A request that was let through: when, and how many tokens it is taken to use: about, until whoever makes it knows.

    `answered`, or `overload` (with the seconds that the provider asked to wait): how it went, where that says something.
    """

    at: float
    tokens: float
    answered: bool = False
    overload: bool = False
    retry_after: float | None = None

    def take_over(self, other: Slot) -> None:
        """It went as another process says."""
        self.tokens, self.answered = other.tokens, other.answered
        self.overload, self.retry_after = other.overload, other.retry_after


class Limiter:
    """Lets requests through in the order in which they come: at most `at_once` together, `rpm` requests and `tpm` tokens in any
    minute (inf: no limit). Times are Trio's.

    When the provider is overloaded nobody asks it for a while, and half as many together afterwards; each answer lets one
    more through again. Every wait can be cancelled and leaves nothing behind.
    """

    def __init__(self, at_once: float = AT_ONCE, rpm: float = inf, tpm: float = inf) -> None:
        self.at_once, self.rpm, self.tpm = at_once, rpm, tpm
        self.answers = 0
        self._width = at_once
        self._busy = 0
        self._pause = FIRST_PAUSE
        self._slowed_at = -inf
        self._resumes_at = -inf
        self._minute: deque[Slot] = deque()
        self._door = trio.Lock()  # fair: whoever comes first waits inside, all others behind
        self._left = trio.lowlevel.ParkingLot()

    def restrict(self, at_once: float = inf, rpm: float = inf, tpm: float = inf) -> None:
        """Take over limits that are stricter than its own."""
        self.at_once, self.rpm, self.tpm = min(self.at_once, at_once), min(self.rpm, rpm), min(self.tpm, tpm)
        self._width = min(self._width, self.at_once)

    async def call(self, attempt: Callable[[Slot], Awaitable[Value]], *, timeout: float, tokens: float = 0) -> Value:
        """What `attempt` gives, made again where it raises TransientError. It may say in its slot how many tokens it used.

        `timeout` seconds count from when it is first let through. One attempt gets half of them, so that a connection that
        was lost does not take the turn with it. Raises AgentError when they are over or it was tried often enough; what else
        `attempt` raises goes through.
        """
        end, tries, last = inf, 0, "none"
        while True:
            with trio.CancelScope(deadline=end) as turn:
                async with self.slot(tokens) as slot:
                    if not tries:
                        end = turn.deadline = slot.at + timeout
                    tries += 1
                    failure = TransientError(f"no answer within {timeout / 2:g} s")
                    with trio.move_on_at(slot.at + timeout / 2):
                        try:
                            value = await attempt(slot)
                        except TransientError as error:
                            failure = error
                        else:
                            slot.answered = True
                            return value
                    slot.overload, slot.retry_after = failure.overload, failure.retry_after
                last = str(failure)
                if tries >= failure.attempts:
                    raise AgentError(f"{last} (tried {tries} times)" if tries > 1 else last)
                if not failure.overload:
                    await trio.sleep(min(FIRST_PAUSE * 2 ** (tries - 1), LONGEST_PAUSE))
            if turn.cancelled_caught:
                raise AgentError(f"no answer within {timeout:g} s; the last attempt: {last}")

    @asynccontextmanager
    async def slot(self, tokens: float = 0) -> AsyncIterator[Slot]:
        """Wait until a request of about `tokens` tokens may be made, and make it inside the block."""
        async with self._door:
            await self._let_through(tokens)
            slot = Slot(trio.current_time(), tokens)
            if min(self.rpm, self.tpm) < inf:
                self._minute.append(slot)
            self._busy += 1
        try:
            yield slot
        finally:
            if slot.answered:
                self._answered()
            elif slot.overload:
                self._refused(slot.at, slot.retry_after)
            self._busy -= 1
            self._left.unpark()

    async def _let_through(self, tokens: float) -> None:
        while True:
            if self._busy >= self._width:
                await self._left.park()
            elif (wait := self._wait(tokens)) > 0:
                await trio.sleep(wait)
            else:
                return

    def _wait(self, tokens: float) -> float:
        """Seconds until the next request may be made, by all that is known now."""
        now = trio.current_time()
        while self._minute and self._minute[0].at <= now - MINUTE:
            self._minute.popleft()
        requests, used, over = len(self._minute), sum(slot.tokens for slot in self._minute), now
        for slot in self._minute:
            if requests < self.rpm and used + min(tokens, self.tpm) <= self.tpm:
                break
            requests, used, over = requests - 1, used - slot.tokens, slot.at + MINUTE
        return max(self._resumes_at, over) - now

    def _refused(self, asked_at: float, retry_after: float | None) -> None:
        """The provider is overloaded. What was asked before it was last said to be says nothing new."""
        now = trio.current_time()
        if asked_at >= self._slowed_at:
            self._slowed_at = now
            self._width = max(1, self._busy // 2)
            if retry_after is None:
                retry_after, self._pause = self._pause, min(2 * self._pause, LONGEST_PAUSE)
        if retry_after is not None:
            self._resumes_at = max(self._resumes_at, now + min(retry_after, LONGEST_PAUSE))

    def _answered(self) -> None:
        self.answers += 1
        self._pause = FIRST_PAUSE
        self._width = min(self._width + 1, self.at_once)
        self._left.unpark()


@final
class SharedLimiter(Limiter):
    """A limiter whose places are handed out at a gate, to this process and others; `key` names it there."""

    def __init__(self, gate: Gate, key: tuple[str, ...], at_once: float = AT_ONCE) -> None:
        super().__init__(at_once)
        self._gate = gate
        self._key = key

    @asynccontextmanager
    async def slot(self, tokens: float = 0) -> AsyncIterator[Slot]:
        """Wait until all together may make a request of about `tokens` tokens, and make it inside the block."""
        slot = Slot(0.0, tokens)
        async with self._gate.through(self._key, Limiter, (self.at_once, self.rpm, self.tpm), slot):
            slot.at = trio.current_time()
            yield slot
        self.answers += slot.answered
