"""The cost of replies, and a cost limit that is never exceeded."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from math import inf
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from longspan.simulator.base.errors import InputError, StoppedError
from longspan.simulator.contract.messages import Usage
from longspan.simulator.subject.ledger import Ledger, Spending, UnpricedCall, check_priced, price_usage, tally_spending
from longspan.simulator.subject.spending_limit import Amount

KNOWN = "openai/gpt-4o"


def test_prices_are_from_the_list_and_cached_tokens_are_cheaper() -> None:
    plain, cached = price_usage(KNOWN, Usage(1_000_000, 0, 0)), price_usage(KNOWN, Usage(1_000_000, 1_000_000, 0))
    assert plain is not None
    assert cached is not None
    assert 0 < cached < plain
    assert price_usage(KNOWN, Usage(0, 0, 0)) == 0
    both = price_usage(KNOWN, Usage(500, 0, 70))
    parts = (price_usage(KNOWN, Usage(500, 0, 0)), price_usage(KNOWN, Usage(0, 0, 70)))
    assert both == pytest.approx(sum(part for part in parts if part is not None))


@pytest.mark.parametrize("model", ["openai/no-such-model-ever", "nobody/gpt-4o", "", "gpt-4o", "http://127.0.0.1:8000", "openai/"])
def test_the_price_of_an_unknown_model_is_none_and_not_zero(model: str) -> None:
    assert price_usage(model, Usage(1000, 0, 1000)) is None


WORST = Usage(1000, 0, 1000)


class Priced:
    """The attributes of an agent that a limit needs."""

    def __init__(self, models: Mapping[str, str] | None, worst: Usage = WORST) -> None:
        self.models = models
        self._worst = worst

    def worst_case(self, message: Any) -> dict[str, Usage]:
        return dict.fromkeys(self.models or {}, self._worst)


def test_a_limit_needs_a_price() -> None:
    check_priced(Priced({}), "free")
    check_priced(Priced({"agent": KNOWN}), "known")
    for agent in (Priced({"agent": "openai/no-such-model"}), Priced(None), object()):
        with pytest.raises(InputError, match=r"--max-cost: agent a/spec: .*leave out --max-cost"):
            check_priced(agent, "a/spec")


@given(
    st.floats(0.01, 5),
    st.lists(st.tuples(st.floats(0.001, 1), st.floats(0, 1), st.sampled_from(["settles", "fails", "says nothing"])), max_size=20),
    st.booleans(),
)
def test_concurrent_calls_never_exceed_the_limit(limit: float, calls: list[tuple[float, float, str]], at_once: bool) -> None:
    """Each call costs a share of its worst case. Together they stay within the limit, and no call waits for ever."""
    ledger = Ledger(Amount(limit, inf))
    paid: list[float] = []

    async def call(worst: float, share: float, end: str) -> None:
        try:
            async with ledger.open_account({"agent": KNOWN}, Amount(worst)) as account:
                paid.append(worst * share if end == "settles" else worst if end == "fails" else 0.0)
                assert sum(paid) <= limit + 1e-9
                await trio.lowlevel.checkpoint()
                if end == "fails":
                    raise KeyError
                account.settle({})
                if end == "settles":
                    account.amount = Amount(worst * share)
        except (StoppedError, KeyError):
            pass

    async def play() -> None:
        async with trio.open_nursery() as nursery:
            for arguments in calls:
                if at_once:
                    nursery.start_soon(call, *arguments)
                else:
                    await call(*arguments)

    trio.run(play)
    assert ledger.spent.dollars == pytest.approx(sum(paid))
    assert ledger.spent.dollars <= limit + 1e-9


@given(
    st.floats(0.01, 5),
    st.lists(st.lists(st.tuples(st.integers(1, 300), st.floats(0, 1)), min_size=1, max_size=6), min_size=1, max_size=8),
    st.floats(0.0001, 0.02),
)
def test_what_is_not_known_beforehand_exceeds_the_limit_by_one_call_at_most(
    limit: float, conversations: list[list[tuple[int, float]]], rate: float
) -> None:
    """Of an agent whose replies take more the longer a conversation is, however many conversations are held at once."""
    ledger = Ledger(Amount(limit, inf))
    paid: list[float] = []

    async def converse(said: list[tuple[int, float]]) -> None:
        depth = 0
        with suppress(StoppedError):
            for length, share in said:
                depth += length
                async with ledger.open_account(None, UnpricedCall("agent", depth)) as account:
                    await trio.lowlevel.checkpoint()
                    account.amount = Amount(rate * depth)
                    paid.append(account.amount.dollars)
                    for _ in range(int(10 * share)):
                        await trio.lowlevel.checkpoint()

    async def play() -> None:
        async with trio.open_nursery() as nursery:
            for said in conversations:
                nursery.start_soon(converse, said)

    trio.run(play)
    assert ledger.spent.dollars == pytest.approx(sum(paid))
    assert sum(paid) <= limit + max(paid) + 1e-9
    wanted = sum(len(said) for said in conversations)
    assert len(paid) == wanted or sum(paid) + max(paid) > limit - 1e-9, "none is stopped that there is money for"


def test_until_a_price_is_known_one_call_is_made_at_a_time() -> None:
    ledger = Ledger(Amount(1.0, inf))
    at_once = [0]

    async def call(depth: int) -> None:
        async with ledger.open_account(None, UnpricedCall("agent", depth)) as account:
            at_once[0] += 1
            for _ in range(5):
                await trio.lowlevel.checkpoint()
            most.append(at_once[0])
            at_once[0] -= 1
            account.amount = Amount(0.01)

    async def calls(*depths: int) -> None:
        async with trio.open_nursery() as nursery:
            for depth in depths:
                nursery.start_soon(call, depth)

    most: list[int] = []
    trio.run(calls, 30, 20, 10)
    trio.run(calls, 40, 50)
    assert max(most[:1] + most[3:]) == 1, "nor is that of longer conversations"
    most.clear()
    trio.run(calls, *range(10, 50, 5))
    assert max(most) > 3, "what shorter ones take is known"


def test_a_call_that_could_exceed_the_limit_is_stopped_with_a_remedy() -> None:
    ledger = Ledger(Amount(1.0, inf), Amount(0.9))

    async def play() -> None:
        async with ledger.open_account({}, Amount(0.2)):
            raise AssertionError("it was let through")

    with pytest.raises(StoppedError, match=r"\$0\.2000 and exceed the limit of \$1\.00.*resume --max-cost"):
        trio.run(play)
    assert ledger.spent.dollars == 0.9


def test_a_call_waits_for_others_that_may_cost_less_than_reserved() -> None:
    ledger = Ledger(Amount(1.0, inf))
    done = []

    async def play() -> None:
        first_is_in = trio.Event()
        second_waits = trio.Event()

        async def first() -> None:
            async with ledger.open_account({}, Amount(0.9)) as account:
                first_is_in.set()
                await second_waits.wait()
                account.settle({})
            done.append("first")

        async def second() -> None:
            await first_is_in.wait()
            second_waits.set()
            async with ledger.open_account({}, Amount(0.9)) as account:
                account.settle({})
            done.append("second")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(first)
            nursery.start_soon(second)

    trio.run(play)
    assert done == ["first", "second"]


def test_a_call_cancelled_while_it_waits_reserves_nothing() -> None:
    ledger = Ledger(Amount(1.0, inf))

    async def play() -> None:
        async with ledger.open_account({}, Amount(1.0)) as account:
            with trio.move_on_after(0):
                async with ledger.open_account({}, Amount(1.0)):
                    raise AssertionError("it was let through")
            account.settle({})
        async with ledger.open_account({}, Amount(1.0)) as account:
            account.settle({})

    trio.run(play)
    assert ledger.spent.dollars == 0


def test_sums_by_part_and_one_unknown_price_makes_the_sum_unknown() -> None:
    usage = {"input_tokens": 10, "cached_tokens": 4, "output_tokens": 2}
    sums = tally_spending([("agent", usage, 0.5), ("agent", usage, 0.25), ("embedder", usage, None), ("embedder", usage, 0.1)])
    assert sums["agent"] == Spending(input_tokens=20, cached_tokens=8, output_tokens=4, cost_usd=0.75)
    assert sums["embedder"].cost_usd is None
    assert tally_spending([]) == {}


def test_without_a_limit_nothing_is_reserved() -> None:
    assert Ledger().worst(object(), None) == Amount()  # type: ignore[arg-type]
