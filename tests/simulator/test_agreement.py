"""Agreement of those who score, against scipy and worked examples."""

from __future__ import annotations

from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from longspan.simulator.base.agreement import icc_one_way, icc_two_way, kappa, mean_interval, pearson, spearman, welch_p_lower

SCORES = st.integers(1, 10).map(float)
PAIRS = st.lists(st.tuples(SCORES, SCORES), min_size=3, max_size=40)

RATED = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
"""Six items, four raters (Shrout and Fleiss, 1979, table 2)."""


@given(PAIRS)
def test_correlations_are_scipys(pairs: list[tuple[float, float]]) -> None:
    left, right = map(list, zip(*pairs, strict=True))
    if len(set(left)) > 1 and len(set(right)) > 1:
        assert pearson(left, right) == pytest.approx(stats.pearsonr(left, right).statistic, abs=1e-9)
        assert spearman(left, right) == pytest.approx(stats.spearmanr(left, right).statistic, abs=1e-9)
    else:
        assert pearson(left, right) is None


@given(st.lists(SCORES, min_size=2, max_size=30), st.lists(SCORES, min_size=2, max_size=30))
def test_welchs_test_is_scipys(some: list[float], others: list[float]) -> None:
    p = welch_p_lower(some, others)
    if len(set(some)) == len(set(others)) == 1:
        assert p is None
    elif len(set(some)) > 1 and len(set(others)) > 1:  # scipy warns where one side is constant
        assert p == pytest.approx(stats.ttest_ind(some, others, equal_var=False, alternative="less").pvalue, abs=1e-9)


@given(st.lists(SCORES, min_size=2, max_size=30))
def test_an_interval_of_a_mean_is_students(values: list[float]) -> None:
    found = mean_interval(values)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert found.value == pytest.approx(fmean(values))
    if len(set(values)) > 1:
        low, high = stats.t.interval(0.95, len(values) - 1, fmean(values), stats.sem(values))
        assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def test_of_one_value_or_none_little_can_be_said() -> None:
    assert mean_interval([]) is None
    assert mean_interval([3.0]) == (3.0, None, None)
    assert pearson([1], [1]) is kappa([], []) is welch_p_lower([1], [2, 3]) is None


@given(PAIRS)
def test_kappa_is_the_one_of_the_weighted_table(pairs: list[tuple[float, float]]) -> None:
    """1 less the observed over the expected mean of squared distances, the latter over all pairs of a left and a right value."""
    left, right = map(list, zip(*pairs, strict=True))
    expected = fmean((a - b) ** 2 for a in left for b in right)
    if expected:
        assert kappa(left, right) == pytest.approx(1 - fmean((a - b) ** 2 for a, b in pairs) / expected)
    else:
        assert kappa(left, right) is None


def test_kappa_of_an_example_worked_by_hand() -> None:
    assert kappa([1, 2, 3], [1, 2, 3]) == pytest.approx(1)
    assert kappa([1, 1, 2, 2], [1, 2, 1, 2]) == pytest.approx(0)
    assert kappa([1, 2], [2, 1]) == pytest.approx(-1)


def test_reliability_is_that_of_the_published_example() -> None:
    assert icc_two_way(RATED) == pytest.approx(0.62, abs=0.005)
    assert icc_one_way(RATED) == pytest.approx(0.44, abs=0.005)


@given(st.lists(SCORES, min_size=2, max_size=10).filter(lambda scores: len(set(scores)) > 1), st.integers(2, 5))
def test_raters_who_agree_are_reliable(scores: list[float], raters: int) -> None:
    rated = [[each] * raters for each in scores]
    assert icc_two_way(rated) == pytest.approx(1)
    assert icc_one_way(rated) == pytest.approx(1)


def test_a_rater_who_is_always_stricter_takes_nothing_from_two_way_order() -> None:
    """But ICC(2,k) is of absolute agreement: it falls with the distance."""
    near, far = ([[each, each - shift] for each in (3.0, 5.0, 8.0)] for shift in (0.1, 4.0))
    assert (icc_two_way(near) or 0) > 0.99 > (icc_two_way(far) or 0) > 0


@pytest.mark.parametrize("rated", [[], [[1.0, 2.0]], [[1.0], [2.0]], [[3.0, 3.0], [3.0, 3.0]]])
def test_reliability_of_too_little_is_none(rated: list[list[float]]) -> None:
    assert icc_two_way(rated) is None
    assert icc_one_way(rated) is None


def test_rows_have_to_be_of_one_length() -> None:
    with pytest.raises(ValueError, match="the same number of scores"):
        icc_one_way([[1.0, 2.0], [1.0]])
