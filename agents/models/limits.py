"""Rate limits for requests to a provider, and the retry policy. A process has one limiter per provider."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import inf
from typing import Final, TypeVar, final

import trio

from longspan.agents.base import AgentError
from longspan.simulator.subject.shared_limits import SharedLimits

__all__ = ["DEFAULT_AT_ONCE", "Limiter", "SharedLimiter", "Slot", "TransientError"]

Value = TypeVar("Value")

DEFAULT_AT_ONCE: Final = 100
"""The default limit of concurrent requests."""

MINUTE: Final = 60.0

FIRST_PAUSE: Final = 1.0
MAX_PAUSE: Final = 60.0
"""Seconds to pause when the provider reports an overload without a Retry-After. The first pause doubles with each further report, up to the
maximum. The maximum also limits a longer Retry-After.
"""


class TransientError(Exception):
    """A failed request that may succeed if repeated.

    `overload`: the provider is overloaded, so all requests to it slow down. `attempts`: the maximum number of attempts (inf: until the
    turn's timeout). `retry_after`: seconds that the provider asked to wait.
    """

    def __init__(self, message: str, *, overload: bool = False, attempts: float = 6, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.overload = overload
        self.attempts = attempts
        self.retry_after = retry_after


@final
@dataclass(slots=True, eq=False)
class Slot:
    """An admitted request.

    `at`: when it was admitted. `tokens`: an estimate until the caller sets the number used. `answered`, `overload`: its outcome; both stay
    False if it says nothing about the provider's load. `retry_after`: seconds that an overloaded provider asked to wait.
    """

    at: float
    tokens: float
    answered: bool = False
    overload: bool = False
    retry_after: float | None = None

    def copy_outcome(self, other: Slot) -> None:
        """Copy the tokens and the outcome that another process recorded."""
        self.tokens, self.answered = other.tokens, other.answered
        self.overload, self.retry_after = other.overload, other.retry_after


class Limiter:
    """A queue that admits requests in order of arrival: at most `at_once` concurrently, and `rpm` requests and `tpm` tokens per minute.

    The value inf means no limit. Times are Trio's. When the provider is overloaded, requests pause; afterwards half the previous number
    runs concurrently, and each answer allows one more. Every wait can be cancelled and leaves nothing behind.
    """

    def __init__(self, at_once: float = DEFAULT_AT_ONCE, rpm: float = inf, tpm: float = inf) -> None:
        self.at_once, self.rpm, self.tpm = at_once, rpm, tpm
        self.answers = 0
        self._allowed = at_once
        self._active = 0
        self._pause = FIRST_PAUSE
        self._slowed_at = -inf
        self._resumes_at = -inf
        self._last_minute: deque[Slot] = deque()
        self._queue = trio.Lock()  # fair: the first request waits inside, the others in order of arrival
        self._freed = trio.lowlevel.ParkingLot()

    def restrict(self, at_once: float = inf, rpm: float = inf, tpm: float = inf) -> None:
        """Adopt each given limit that is stricter than the current one."""
        self.at_once, self.rpm, self.tpm = min(self.at_once, at_once), min(self.rpm, rpm), min(self.tpm, tpm)
        self._allowed = min(self._allowed, self.at_once)

    async def call(self, attempt: Callable[[Slot], Awaitable[Value]], *, timeout: float, tokens: float = 0) -> Value:
        """Return the result of `attempt`, repeating it while it raises TransientError.

        `attempt` may record the tokens used in its slot. The `timeout` in seconds starts when it is first admitted. One attempt gets half
        of it, so that a lost connection does not fail the turn. Raises AgentError at the timeout or after the maximum number of attempts.
        Other errors of `attempt` propagate.
        """
        end, attempts, last = inf, 0, "none"
        while True:
            with trio.CancelScope(deadline=end) as turn:
                async with self.slot(tokens) as slot:
                    if not attempts:
                        end = turn.deadline = slot.at + timeout
                    attempts += 1
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
                if attempts >= failure.attempts:
                    raise AgentError(f"{last} (tried {attempts} times)" if attempts > 1 else last)
                if not failure.overload:
                    await trio.sleep(min(FIRST_PAUSE * 2 ** (attempts - 1), MAX_PAUSE))
            if turn.cancelled_caught:
                raise AgentError(f"no answer within {timeout:g} s; the last attempt: {last}")

    @asynccontextmanager
    async def slot(self, tokens: float = 0) -> AsyncIterator[Slot]:
        """Wait until a request of about `tokens` tokens may be made. The caller makes it inside the block."""
        async with self._queue:
            await self._admit(tokens)
            slot = Slot(trio.current_time(), tokens)
            if min(self.rpm, self.tpm) < inf:
                self._last_minute.append(slot)
            self._active += 1
        try:
            yield slot
        finally:
            if slot.answered:
                self._on_answer()
            elif slot.overload:
                self._on_overload(slot.at, slot.retry_after)
            self._active -= 1
            self._freed.unpark()

    async def _admit(self, tokens: float) -> None:
        while True:
            if self._active >= self._allowed:
                await self._freed.park()
            elif (wait := self._wait(tokens)) > 0:
                await trio.sleep(wait)
            else:
                return

    def _wait(self, tokens: float) -> float:
        """Return the seconds until the next request may be made, as currently known."""
        now = trio.current_time()
        while self._last_minute and self._last_minute[0].at <= now - MINUTE:
            self._last_minute.popleft()
        requests, used, ready_at = len(self._last_minute), sum(slot.tokens for slot in self._last_minute), now
        for slot in self._last_minute:
            if requests < self.rpm and used + min(tokens, self.tpm) <= self.tpm:
                break
            requests, used, ready_at = requests - 1, used - slot.tokens, slot.at + MINUTE
        return max(self._resumes_at, ready_at) - now

    def _on_overload(self, asked_at: float, retry_after: float | None) -> None:
        """Slow down after an overload. Requests from before the last slowdown provide no new information."""
        now = trio.current_time()
        if asked_at >= self._slowed_at:
            self._slowed_at = now
            self._allowed = max(1, self._active // 2)
            if retry_after is None:
                retry_after, self._pause = self._pause, min(2 * self._pause, MAX_PAUSE)
        if retry_after is not None:
            self._resumes_at = max(self._resumes_at, now + min(retry_after, MAX_PAUSE))

    def _on_answer(self) -> None:
        self.answers += 1
        self._pause = FIRST_PAUSE
        self._allowed = min(self._allowed + 1, self.at_once)
        self._freed.unpark()


@final
class SharedLimiter(Limiter):
    """A limiter whose limits are shared with other processes under the name `key`."""

    def __init__(self, shared: SharedLimits, key: tuple[str, ...], at_once: float = DEFAULT_AT_ONCE) -> None:
        super().__init__(at_once)
        self._shared = shared
        self._key = key

    @asynccontextmanager
    async def slot(self, tokens: float = 0) -> AsyncIterator[Slot]:
        """Wait until the shared limits allow a request of about `tokens` tokens. The caller makes it inside the block."""
        slot = Slot(0.0, tokens)
        async with self._shared.admit(self._key, Limiter, (self.at_once, self.rpm, self.tpm), slot):
            slot.at = trio.current_time()
            yield slot
        self.answers += slot.answered
