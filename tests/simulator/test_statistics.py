"""Statistics: figures worked out by hand, figures of scipy's, and simulations that show whether they keep what they promise."""

from __future__ import annotations

from itertools import pairwise
from math import sqrt
from statistics import fmean

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from longspan.simulator.analysis import statistics
from longspan.simulator.analysis.statistics import Interval, Observed, holm, interval, more_tests, paired, permutation_p, spread, total

SHARES = st.sampled_from([0.0, 0.2, 1 / 3, 0.5, 1.0])


def observed(scores: dict[str, list[float | None]], conversation: str = "main") -> list[Observed]:
    return [
        Observed(name, conversation, score or 0.0, 1.0 if score is None else score) for name, group in scores.items() for score in group
    ]


# Sums.


def test_a_score_is_the_sum_of_the_scenarios_means_and_its_spread_that_of_their_population_deviations() -> None:
    scores = {"colours": [1.0, 0.0, 0.5], "jokes": [1.0, 1.0, 1.0], "shopping": [0.0, 1.0]}
    assert total(scores) == pytest.approx(0.5 + 1 + 0.5)
    assert spread(scores) == pytest.approx(sqrt(0.5 / 3) + 0 + 0.5)


# Intervals.


def test_one_scenarios_interval_is_that_of_scipys_bootstrap() -> None:
    random = np.random.default_rng(1)
    scores = random.beta(2, 3, 200).tolist()
    found = interval(observed({"colours": scores}))
    theirs = scipy.stats.bootstrap((scores,), np.mean, n_resamples=5000, method="percentile", rng=np.random.default_rng(2))
    assert found is not None
    assert (found.low, found.high) == pytest.approx(tuple(theirs.confidence_interval), abs=0.004)


def test_the_interval_of_few_is_as_wide_as_students_t_makes_it() -> None:
    """A sum over scenarios of means of n tests: its variance is the sum of s²/n, which plain resampling takes for too small."""
    random = np.random.default_rng(3)
    scores = {name: random.uniform(size=4).tolist() for name in "abcdef"}
    found = interval(observed(scores))
    error = sqrt(sum(np.var(group, ddof=1) / 4 for group in scores.values()))
    assert found is not None
    assert found.high - found.low == pytest.approx(2 * scipy.stats.t.ppf(0.975, 18) * error, rel=0.05)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 22, 23, 1_000, 100_001])
def test_students_quantile_is_scipys(freedom: int) -> None:
    assert statistics._student(freedom) == pytest.approx(scipy.stats.t.ppf(0.975, freedom), rel=1e-9)


def test_one_conversation_is_resampled_by_tests_and_several_as_wholes() -> None:
    alike: dict[str, list[float | None]] = {"colours": [0.0, 1.0], "jokes": [0.0, 1.0]}
    one = interval(observed(alike))
    assert one is not None
    assert one.by == "tests"
    good = observed({"colours": [1.0, 1.0], "jokes": [1.0, 1.0]}, "good")
    bad = observed({"colours": [0.0, 0.0], "jokes": [0.0, 0.0]}, "bad")
    assert interval(good + bad) == Interval(0, 2, "conversations")


def test_isolated_tests_are_conversations_of_their_own_within_their_scenario() -> None:
    tests = [Observed(name, f"{name}-{n}", float(n > 1), float(n > 1)) for name in ("colours", "jokes") for n in range(4)]
    woven = [test._replace(conversation="main") for test in tests]
    found, by_tests = interval(tests), interval(woven)
    assert found is not None
    assert by_tests is not None
    assert (found.low, found.high) == (by_tests.low, by_tests.high)


def test_a_scenario_with_one_test_has_no_interval() -> None:
    assert interval(observed({"colours": [1.0, 0.0], "jokes": [1.0]})) is None


def test_tests_without_a_score_widen_the_interval_to_what_they_could_be() -> None:
    known = interval(observed({"colours": [1.0, 1.0, 0.0, 0.0]}))
    unknown = interval(observed({"colours": [1.0, 1.0, None, None]}))
    assert known is not None
    assert unknown is not None
    assert unknown.low == known.low
    assert unknown.high == 1.0


@given(st.dictionaries(st.sampled_from("abc"), st.lists(SHARES | st.none(), min_size=2, max_size=5), min_size=1), st.randoms())
def test_an_interval_is_of_what_there_is_and_not_of_how_it_is_listed(scores: dict[str, list[float | None]], random: object) -> None:
    tests = observed(scores)
    found = interval(tests)
    shuffled = list(tests)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert found is not None
    assert 0 <= found.low <= found.high <= len(scores) + 1e-9
    assert interval([test._replace(conversation="elsewhere") for test in shuffled]) == found


@pytest.mark.parametrize(("conversations", "apart"), [(1, 0.0), (3, 0.0), (8, 1.0)])
def test_an_interval_of_95_percent_holds_the_truth_in_95_of_100_cases(
    conversations: int, apart: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eleven scenarios, three tests of each in a conversation, right or wrong. Conversations differ in how well they go: by a
    deviation of so many logits."""
    monkeypatch.setattr(statistics, "RESAMPLES", 400)
    random = np.random.default_rng(7)
    cases, held = 250, 0
    for _ in range(cases):
        skill = scipy.special.logit(random.beta(0.6, 0.6, 11))
        truth = scipy.special.expit(skill + random.normal(0, apart, (2_000, 1))).mean(axis=0).sum()
        chances = scipy.special.expit(skill + random.normal(0, apart, (conversations, 1)))
        scores = (random.random((conversations, 11, 3)) < chances[:, :, None]).astype(float)
        found = interval([Observed(str(where[1]), str(where[0]), score, score) for where, score in np.ndenumerate(scores)])
        assert found is not None
        held += found.low - 1e-9 <= truth <= found.high + 1e-9
    assert 0.92 <= held / cases <= 0.98


# Two agents.


def test_a_difference_of_totals_is_the_sum_of_its_parts() -> None:
    assert paired({"colours": [1.0, 0.0, -1.0], "jokes": [0.5]}) == pytest.approx([1 / 3, 0, -1 / 3, 0.5])


def sum_of(values: object, axis: int) -> object:
    return np.sum(values, axis=axis)  # type: ignore[call-overload]


@given(st.lists(st.sampled_from([-1.0, -0.5, -1 / 3, 0.0, 0.2, 1 / 3, 1.0]), min_size=2, max_size=8))
def test_few_pairs_are_tested_exactly_as_by_scipy(parts: list[float]) -> None:
    theirs = scipy.stats.permutation_test((parts,), sum_of, permutation_type="samples", vectorized=True, n_resamples=2**9)
    assert permutation_p(parts) == pytest.approx(theirs.pvalue)


def test_many_pairs_are_tested_by_a_sample_that_is_as_scipys() -> None:
    parts = np.random.default_rng(4).normal(0.2, 1, 60).tolist()
    random = np.random.default_rng(5)
    theirs = scipy.stats.permutation_test((parts,), sum_of, permutation_type="samples", vectorized=True, n_resamples=20_000, rng=random)
    assert 0.01 < permutation_p(parts) == pytest.approx(theirs.pvalue, abs=0.01)
    assert permutation_p(parts) == permutation_p(parts)


def test_agents_that_are_equal_are_not_told_apart() -> None:
    assert permutation_p([0.0] * 40) == 1
    assert permutation_p([]) == 1
    assert more_tests({"colours": [0.0, 0.0], "jokes": [0.5, -0.5]}) is None


def test_a_p_value_is_never_0() -> None:
    assert permutation_p([1.0] * 5) == pytest.approx(2 / 2**5)
    assert permutation_p([1.0] * 100) > 0


def test_holms_correction_by_hand() -> None:
    """0.005 x 4, 0.01 x 3, 0.03 x 2; then 0.04 x 1, which must not fall below the one before."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_corrects_no_more_than_bonferroni_and_keeps_the_order(ps: list[float]) -> None:
    found = holm(ps)
    assert all(p <= corrected <= min(1.0, len(ps) * p) + 1e-12 for p, corrected in zip(ps, found, strict=True))
    assert min(found) == pytest.approx(min(1.0, len(ps) * min(ps)))
    ranked = [corrected for _, corrected in sorted(zip(ps, found, strict=True))]
    assert all(one <= other for one, other in pairwise(ranked))


def test_more_tests_by_hand() -> None:
    """A mean difference of 0.2 and a deviation of 0.5: (1.95996 + 0.84162)² x 0.25 / 0.04 = 49.06 tests, so 50."""
    differences = [0.2 + 0.5 * sqrt(9 / 10) * sign for sign in (1, -1) * 5]
    assert np.std(differences, ddof=1) == pytest.approx(0.5)
    assert more_tests({"colours": differences}) == 50 - 10


def test_so_many_tests_tell_two_agents_apart_in_four_of_five_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """The 50 of above, of differences with that mean and deviation."""
    monkeypatch.setattr(statistics, "SIGNS", 2_000)
    random = np.random.default_rng(6)
    found = [permutation_p(random.normal(0.2, 0.5, 50).tolist()) < 0.05 for _ in range(600)]
    assert fmean(found) == pytest.approx(0.8, abs=0.04)


def test_no_more_tests_are_needed_of_agents_that_are_far_apart_unless_they_are_too_few_to_show_it() -> None:
    assert more_tests({"colours": [1.0] * 6}) == 0
    assert more_tests({"colours": [1.0] * 3}) == 3
    assert permutation_p([1.0] * 6) < 0.05 < permutation_p([1.0] * 5)
