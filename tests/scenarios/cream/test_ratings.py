"""Elo and Bradley-Terry: hand-worked cases, and what holds of any matches."""

from __future__ import annotations

from math import log10
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longspan.scenarios.cream.bradley_terry import bootstrap_ratings, bradley_terry
from longspan.scenarios.cream.elo import Match, expected_points, match_points, over_orders, rate_systems

SYSTEMS = ["a", "b", "c", "d"]

matches = st.lists(
    st.tuples(st.permutations(SYSTEMS), st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from(["s", "t", "u"])).map(
        lambda drawn: Match(drawn[0][0], drawn[0][1], drawn[1], drawn[2])
    ),
    max_size=20,
)


def test_two_matches_worked_by_hand() -> None:
    """1000 each: E = 1/2, so 16 points go over. Then 1016 meets 1000: E = 1 / (1 + 10 ** (-16 / 400)) = 0.52301."""
    found = rate_systems([Match("a", "b", 1.0), Match("a", "c", 0.5)], ["a", "b", "c"])
    assert found["b"] == 984
    assert found["a"] == pytest.approx(1016 - 32 * 0.023010, abs=1e-3)
    assert found["c"] == pytest.approx(1000 + 32 * 0.023010, abs=1e-3)


def test_expectations_are_those_of_the_formula_and_never_overflow() -> None:
    assert expected_points(1400, 1000) == pytest.approx(10 / 11)
    assert (expected_points(1e9, 0), expected_points(0, 1e9)) == (1, 0)


def test_scores_as_close_as_the_tolerance_are_a_draw() -> None:
    assert [match_points(0.5, 0.45), match_points(0.45, 0.5), match_points(0.5, 0.5)] == [1, 0, 0.5]
    assert [match_points(0.5, 0.45, 0.05), match_points(0.1 + 0.2, 0.3), match_points(0.5, 0.44, 0.05)] == [0.5, 0.5, 1]


@given(matches, st.floats(0.1, 500), st.floats(-1e4, 1e4))
def test_what_one_gains_the_other_loses(played: list[Match], k: float, start: float) -> None:
    assert sum(rate_systems(played, SYSTEMS, k=k, start=start).values()) == pytest.approx(4 * start, abs=1e-6)
    means = over_orders(played, SYSTEMS, orders=7, k=k, start=start).mean(axis=0)
    assert means.sum() == pytest.approx(4 * start, abs=1e-6)


@settings(max_examples=30)
@given(matches, st.randoms(use_true_random=False))
def test_ratings_over_orders_do_not_hang_on_the_order_given(played: list[Match], random: Random) -> None:
    shuffled = random.sample(played, len(played))
    assert np.array_equal(over_orders(played, SYSTEMS, orders=9), over_orders(shuffled, SYSTEMS, orders=9))


def test_ratings_over_orders_are_those_of_the_orders() -> None:
    """Two matches have two orders: the ratings follow from one or the other, and both occur."""
    played = [Match("a", "b", 1.0), Match("b", "c", 1.0)]
    ways = [[rate_systems(way, SYSTEMS)[system] for system in SYSTEMS] for way in (played, played[::-1])]
    found = over_orders(played, SYSTEMS, orders=40)
    near = [[np.allclose(row, way) for way in ways] for row in found]
    assert all(map(any, near))
    assert all(any(row[at] for row in near) for at in (0, 1))


def test_bradley_terry_of_two_is_the_odds() -> None:
    """Three wins to one: the odds are 3, the ratings 400 log10(3) apart. A draw is half a win for each."""
    played = [Match("a", "b", 1.0)] * 3 + [Match("b", "a", 1.0)]
    found = bradley_terry(played, ["a", "b"])
    assert found.ratings is not None
    assert not found.padded
    assert found.ratings["a"] - found.ratings["b"] == pytest.approx(400 * log10(3), abs=1e-3)
    assert sum(found.ratings.values()) == pytest.approx(2000)
    halves = bradley_terry([Match("a", "b", 0.5)] * 2 + [Match("a", "b", 1.0)] * 2, ["a", "b"]).ratings
    assert halves == pytest.approx(found.ratings, abs=1e-3)


def test_bradley_terry_of_three_by_hand() -> None:
    """a beats b 2 to 1, b beats c 2 to 1, a and c never meet: each step is 400 log10(2)."""
    played = [Match("a", "b", p) for p in (1, 1, 0)] + [Match("b", "c", p) for p in (1, 1, 0)]
    found = bradley_terry(played, ["a", "b", "c"]).ratings
    assert found is not None
    step = 400 * log10(2)
    assert [found[s] for s in "abc"] == pytest.approx([1000 + step, 1000, 1000 - step], abs=1e-2)


def test_bradley_terry_where_there_is_no_finite_rating() -> None:
    found = bradley_terry([Match("a", "b", 1.0)], ["a", "b"])
    assert found.padded
    assert found.ratings is not None
    assert found.ratings["a"] - found.ratings["b"] == pytest.approx(400 * log10(3), abs=1e-3), "1.5 wins to 0.5"
    assert bradley_terry([Match("a", "b", 1.0)], SYSTEMS) == (None, False), "c and d met nobody"
    assert bradley_terry([], SYSTEMS).ratings is None


@settings(max_examples=40)
@given(matches, st.randoms(use_true_random=False))
def test_bradley_terry_knows_no_order(played: list[Match], random: Random) -> None:
    one, other = bradley_terry(played, SYSTEMS), bradley_terry(random.sample(played, len(played)), SYSTEMS)
    assert one.padded == other.padded
    assert one.ratings == pytest.approx(other.ratings, abs=0.1)


def test_resamples_of_sources_spread_around_the_rating() -> None:
    played = [Match("a", "b", float(n % 4 > 0), f"source {n}") for n in range(40)]
    drawn = bootstrap_ratings(played, ["a", "b"])
    assert drawn is not None
    low, high = np.quantile(drawn[:, 0] - drawn[:, 1], [0.025, 0.975])
    assert 0 < low < 400 * log10(3) < high < 500
    assert bootstrap_ratings(played[:1], ["a", "b"]) is None, "one source says nothing of others"
