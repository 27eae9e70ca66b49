from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import inf
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from longspan.agents.base import AgentError
from longspan.agents.models.limits import MAX_PAUSE, Limiter, Slot, TransientError


def run(play: Callable[[], Awaitable[Any]]) -> Any:
    return trio.run(play, clock=MockClock(autojump_threshold=0))


def busy(**more: Any) -> TransientError:
    return TransientError("is overloaded", overload=True, attempts=inf, **more)


class Provider:
    """Answers after a second. The errors in `trouble` are raised instead, in order."""

    def __init__(self, trouble: list[Exception | None] | None = None, *, takes: float = 1.0, answers: str = "yes") -> None:
        self.trouble = list(trouble or [])
        self.takes, self.answers = takes, answers
        self.began: list[float] = []
        self.at_once = self.most_at_once = 0

    async def attempt(self, slot: Slot) -> str:
        self.began.append(trio.current_time() - self.start)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await trio.sleep(self.takes)
        finally:
            self.at_once -= 1
        trouble = self.trouble.pop(0) if self.trouble else None
        if trouble is not None:
            raise trouble
        return self.answers

    async def ask(self, limiter: Limiter, times: int = 1, **call: Any) -> None:
        self.start = trio.current_time()
        async with trio.open_nursery() as nursery:
            for _ in range(times):
                nursery.start_soon(lambda: limiter.call(self.attempt, **({"timeout": 600} | call)))


def test_no_more_than_at_once_requests_run_together() -> None:
    provider = Provider()
    run(lambda: provider.ask(Limiter(at_once=3), 10))
    assert provider.most_at_once == 3
    assert sorted(provider.began) == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]


@given(st.integers(1, 8), st.integers(1, 40))
def test_no_minute_has_more_than_rpm_requests(rpm: int, times: int) -> None:
    provider = Provider(takes=0.5)
    run(lambda: provider.ask(Limiter(rpm=rpm), times))
    assert len(provider.began) == times
    for begin in provider.began:
        assert sum(begin <= at < begin + 60 for at in provider.began) <= rpm
    assert max(provider.began) <= 60 * ((times - 1) // rpm)  # and no fewer


@given(st.lists(st.integers(0, 150), max_size=20))
def test_no_minute_has_more_than_tpm_tokens_unless_one_request_does(sizes: list[int]) -> None:
    limiter, sent = Limiter(tpm=100), []

    async def one(tokens: int) -> None:
        async with limiter.slot(tokens) as slot:
            sent.append((slot.at, tokens))

    async def play() -> None:
        async with trio.open_nursery() as nursery:
            for tokens in sizes:
                nursery.start_soon(one, tokens)

    run(play)
    assert len(sent) == len(sizes)
    for begin, _ in sent:
        minute = [tokens for at, tokens in sent if begin <= at < begin + 60 and tokens]
        assert sum(minute) <= 100 or len(minute) == 1


def test_used_tokens_replace_the_estimate() -> None:
    limiter, began = Limiter(tpm=100), []

    async def attempt(slot: Slot) -> None:
        began.append(trio.current_time())
        slot.tokens = 10

    async def play() -> None:
        for _ in range(10):
            await limiter.call(attempt, timeout=600, tokens=50)

    run(play)
    assert [at - began[0] for at in began] == [0] * 6 + [60] * 4


def test_overload_pauses_all_requests_and_then_allows_fewer() -> None:
    provider = Provider([busy() for _ in range(8)])
    run(lambda: provider.ask(Limiter(at_once=8), 8))
    # The eight overloads count as one warning. After the pause half as many may run, and each answer allows one more.
    assert provider.began == [0] * 8 + [2] * 4 + [3] * 4


def test_pauses_double_and_end_with_the_first_answer() -> None:
    provider = Provider([busy(), busy(), busy(), None, busy()], takes=0)

    async def play() -> None:
        limiter = Limiter()
        await provider.ask(limiter)
        await provider.ask(limiter)

    run(play)
    assert provider.began == [0, 1, 3, 7, 0, 1]


@pytest.mark.parametrize(("asked", "waited"), [(0.0, 0), (5.0, 5), (3600.0, MAX_PAUSE)])
def test_retry_after_is_respected_up_to_a_minute(asked: float, waited: float) -> None:
    provider = Provider([busy(retry_after=asked)], takes=0)
    run(lambda: provider.ask(Limiter()))
    assert provider.began == [0, waited]


def test_a_failed_request_does_not_delay_others() -> None:
    provider = Provider([TransientError("broke off")], takes=0)
    limiter = Limiter()

    async def play() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(provider.ask, limiter)
            await trio.testing.wait_all_tasks_blocked()
            await limiter.call(provider.attempt, timeout=600)

    run(play)
    assert provider.began == [0, 0, 1]


def test_after_the_last_attempt_it_is_an_error() -> None:
    provider = Provider([TransientError("gave nonsense", attempts=3) for _ in range(9)])
    with pytest.raises(AgentError, match=r"^gave nonsense \(tried 3 times\)$"):
        run(lambda: _bare(provider))
    assert len(provider.began) == 3


async def _bare(provider: Provider, timeout: float = 600) -> None:
    provider.start = trio.current_time()
    await Limiter().call(provider.attempt, timeout=timeout)


def test_a_turn_has_a_deadline_however_long_the_provider_is_overloaded() -> None:
    provider = Provider([busy() for _ in range(999)])
    with pytest.raises(AgentError, match="no answer within 100 s; the last attempt: is overloaded"):
        run(lambda: _bare(provider, 100))
    assert 3 <= len(provider.began) <= 20


def test_a_hanging_attempt_is_repeated_within_the_deadline() -> None:
    provider = Provider(takes=inf)
    with pytest.raises(AgentError, match="no answer within 100 s; the last attempt: no answer within 50 s"):
        run(lambda: _bare(provider, 100))
    assert provider.began == [0, 51]


def test_waiting_for_others_does_not_count_against_a_turn() -> None:
    provider = Provider(takes=8)
    run(lambda: provider.ask(Limiter(at_once=1), 20, timeout=20))
    assert provider.began == [8 * n for n in range(20)]


def test_other_errors_propagate_at_once() -> None:
    provider = Provider([AgentError("refuses")])
    with pytest.raises(AgentError, match=r"^refuses$"):
        run(lambda: _bare(provider))
    assert provider.began == [0]


@given(st.integers(1, 4), st.lists(st.tuples(st.floats(0, 5), st.sampled_from(["good", "busy", "broken"])), min_size=1, max_size=20))
def test_cancelled_or_not_it_leaves_nothing_behind(at_once: int, plan: list[tuple[float, str]]) -> None:
    limiter = Limiter(at_once=at_once, rpm=1000)
    troubles = {"good": None, "busy": busy(), "broken": TransientError("broke off")}

    async def one(patience: float, trouble: str) -> None:
        provider = Provider([troubles[trouble]])
        provider.start = 0
        with trio.move_on_after(patience):
            await limiter.call(provider.attempt, timeout=600)

    async def play() -> None:
        async with trio.open_nursery() as nursery:
            for patience, trouble in plan:
                nursery.start_soon(one, patience, trouble)
        provider = Provider()
        with trio.fail_after(2 * MAX_PAUSE):
            await provider.ask(limiter, at_once)
        assert provider.most_at_once >= 1

    run(play)


def test_the_strictest_limits_apply() -> None:
    limiter = Limiter(at_once=10, rpm=100)
    limiter.restrict(at_once=20, rpm=50)
    limiter.restrict(tpm=7)
    assert (limiter.at_once, limiter.rpm, limiter.tpm) == (10, 50, 7)
