"""The look-ahead, against every order there is: a yes is always true, and a no is never said where any order will do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longspan.simulator.play import look_ahead
from longspan.simulator.play.look_ahead import Job, can_schedule, plays_out

Chains = Sequence[Sequence[Job]]


@st.composite
def chains(draw: st.DrawFn) -> Chains:
    """Up to four tests with up to three segments each, released in order, with deadlines in order."""
    drawn = []
    for _ in range(draw(st.integers(1, 4))):
        releases = sorted(draw(st.lists(st.integers(0, 40), min_size=1, max_size=3)))
        slack = draw(st.integers(0, 40))
        costs = [draw(st.integers(1, 12)) for _ in releases]
        drawn.append([Job(at, at + cost + slack, cost) for at, cost in zip(releases, costs, strict=True)])
    return drawn


def ends(position: float, left: Chains) -> Iterator[bool]:
    """Yield, for each possible order of the jobs, whether all meet their deadlines."""
    if not any(left):
        yield True
    for number, chain in enumerate(left):
        if chain:
            end = max(position, chain[0].release) + chain[0].cost
            if end > chain[0].deadline:
                yield False
            else:
                yield from ends(end, [rest[1:] if k == number else rest for k, rest in enumerate(left)])


@given(chains())
def test_a_yes_has_an_order_in_which_every_deadline_is_met(drawn: Chains) -> None:
    if plays_out(0, drawn):
        assert any(ends(0, drawn))


@given(chains())
def test_what_does_not_even_fit_in_parts_has_no_such_order(drawn: Chains) -> None:
    if not can_schedule(0, sorted(job for chain in drawn for job in chain)):
        assert not any(ends(0, drawn))
        assert not plays_out(0, drawn)


@given(chains())
def test_where_any_order_will_do_the_answer_is_yes(drawn: Chains) -> None:
    if all(ends(0, drawn)):
        assert plays_out(0, drawn)


@given(chains(), st.integers(1, 12), st.integers(0, 30))
def test_the_first_segment_of_a_test_that_opens_comes_before_all_others(drawn: Chains, cost: int, slack: int) -> None:
    opening = Job(0, cost + slack, cost)
    if plays_out(0, [*drawn, [opening]], first=True):
        assert any(ends(cost, drawn))


@given(chains(), st.integers(0, 5), st.booleans())
def test_saying_the_most_urgent_first_is_a_short_cut_to_the_same_answer(drawn: Chains, gap: int, first: bool) -> None:
    apart = [[job._replace(gap=gap) for job in chain] for chain in drawn]
    answer = plays_out(0, apart, first=first)
    with pytest.MonkeyPatch.context() as without:
        without.setattr(look_ahead, "urgent_first", lambda position, chains: False)
        assert plays_out(0, apart, first=first) == answer


def test_nothing_to_say_is_always_said_in_time() -> None:
    assert plays_out(100, [])
    assert plays_out(100, [[]])


def test_a_segment_is_said_in_one_go() -> None:
    long, short = Job(0, 100, 10), Job(1, 4, 2)
    assert can_schedule(0, sorted([long, short])), "in parts, the short one fits in between"
    assert plays_out(0, [[long], [short]]), "the long one waits"
    assert not plays_out(0, [[Job(0, 11, 10)], [short]])
