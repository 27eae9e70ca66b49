"""Statistics: figures worked out by hand, figures of scipy's, and simulations that show whether they keep what they promise."""

from __future__ import annotations

import os
from itertools import pairwise
from math import comb, sqrt
from statistics import fmean

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from longspan.simulator.results.analysis import statistics
from longspan.simulator.results.analysis.statistics import (
    Difference,
    Interval,
    ObservedTest,
    by_conversation,
    by_test,
    holm,
    least_conversations,
    more_conversations,
    paired_permutation_p,
    permutation_p,
    score_spread,
    student_quantile,
    total_interval,
    total_intervals,
    total_score,
)

SHARES = st.sampled_from([0.0, 0.2, 1 / 3, 0.5, 1.0])

INTERVALS, COMPARISONS = (50_000, 20_000) if os.environ.get("LONGSPAN_SEEDS") == "all" else (10_000, 2_000)
"""How many are simulated. By chance, a coverage of 95% is then off by more than 0.7%, and a level of 5% by more than 1.5%, in one of 500
simulations; so the limits are tested as they are, without a tolerance."""


def observed(scores: dict[str, list[float | None]], conversation: str = "main") -> list[ObservedTest]:
    return [
        ObservedTest(name, conversation, score or 0.0, 1.0 if score is None else score) for name, group in scores.items() for score in group
    ]


def wide(found: Interval | None) -> float:
    assert found is not None
    return found.high - found.low


# Sums.


def test_a_score_is_the_sum_of_the_scenarios_means_and_its_spread_that_of_their_population_deviations() -> None:
    scores = {"colours": [1.0, 0.0, 0.5], "jokes": [1.0, 1.0, 1.0], "shopping": [0.0, 1.0]}
    assert total_score(scores) == pytest.approx(0.5 + 1 + 0.5)
    assert score_spread(scores) == pytest.approx(sqrt(0.5 / 3) + 0 + 0.5)


# Intervals.


@pytest.mark.parametrize(("right", "tests"), [(0, 3), (1, 3), (2, 10), (50, 100), (200, 200)])
def test_one_scenario_that_is_right_or_wrong_has_wilsons_interval(right: int, tests: int) -> None:
    found = total_interval(observed({"colours": [1.0] * right + [0.0] * (tests - right)}))
    theirs = scipy.stats.binomtest(right, tests).proportion_ci(method="wilson")
    assert found is not None
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_of_many_tests_it_is_the_normal_interval() -> None:
    """A sum over scenarios of means of n tests: its variance is the sum of s²/n."""
    random = np.random.default_rng(3)
    scores = {name: random.beta(2, 3, 200 + 20 * number).tolist() for number, name in enumerate("abcdef")}
    error = sqrt(sum(np.var(group, ddof=1) / len(group) for group in scores.values()))
    found = total_interval(observed(scores))
    assert found is not None
    assert (found.low, found.high) == pytest.approx((total_score(scores) - 1.96 * error, total_score(scores) + 1.96 * error), abs=0.01)


def test_of_conversations_it_is_as_wide_as_students_t_makes_it() -> None:
    """Five conversations of fifty tests, whose shares of full marks are 0.3 to 0.7."""
    shares = [0.3, 0.4, 0.5, 0.6, 0.7]
    tests = [ObservedTest("colours", str(share), float(n < 50 * share), float(n < 50 * share)) for share in shares for n in range(50)]
    t = scipy.stats.t.ppf(0.975, 4) * np.std(shares, ddof=1) / sqrt(5)
    found = total_interval(tests)
    assert found is not None
    assert found.by == "conversations"
    assert found.high - 0.5 == pytest.approx(0.5 - found.low)
    # Wilson's formula of a share of one half narrows the half width t to t / sqrt(1 + 4t²).
    assert found.high - 0.5 == pytest.approx(t / sqrt(1 + 4 * t**2), rel=0.01)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 22, 23, 1_000, 100_001])
def test_students_quantile_is_scipys(freedom: int) -> None:
    assert student_quantile(freedom) == pytest.approx(scipy.stats.t.ppf(0.975, freedom), rel=1e-9)


def test_one_conversation_counts_by_tests_and_several_as_wholes() -> None:
    alike: dict[str, list[float | None]] = {"colours": [0.0, 1.0], "jokes": [0.0, 1.0]}
    one = total_interval(observed(alike))
    assert one is not None
    assert one.by == "tests"
    good = observed({"colours": [1.0, 1.0], "jokes": [1.0, 1.0]}, "good")
    bad = observed({"colours": [0.0, 0.0], "jokes": [0.0, 0.0]}, "bad")
    theirs = scipy.stats.binomtest(1, 2).proportion_ci(method="wilson")
    assert total_interval(good + bad) == Interval(round(2 * theirs.low, 9), round(2 * theirs.high, 9), "conversations"), "one of two"


def test_isolated_tests_are_conversations_of_their_own_within_their_scenario() -> None:
    tests = [ObservedTest(name, f"{name}-{n}", float(n > 1), float(n > 1)) for name in ("colours", "jokes") for n in range(4)]
    found, by_tests = total_interval(tests), total_interval([test._replace(conversation="main") for test in tests])
    assert found is not None
    assert by_tests is not None
    assert found == by_tests._replace(by="conversations")


def test_a_scenario_with_one_test_has_no_interval() -> None:
    assert total_interval(observed({"colours": [1.0, 0.0], "jokes": [1.0]})) is None
    assert total_interval([]) is None


def test_tests_without_a_score_widen_the_interval_to_what_they_could_be() -> None:
    worst = total_interval(observed({"colours": [1.0, 1.0, 0.0, 0.0]}))
    best = total_interval(observed({"colours": [1.0, 1.0, 1.0, 1.0]}))
    unknown = total_interval(observed({"colours": [1.0, 1.0, None, None]}))
    assert worst is not None
    assert best is not None
    assert unknown == Interval(worst.low, best.high, "tests")


@given(st.dictionaries(st.sampled_from("abc"), st.lists(SHARES | st.none(), min_size=2, max_size=5), min_size=1), st.randoms())
def test_an_interval_is_of_what_there_is_and_not_of_how_it_is_listed(scores: dict[str, list[float | None]], random: object) -> None:
    tests = observed(scores)
    found = total_interval(tests)
    shuffled = list(tests)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert found is not None
    low, high = (
        total_score({name: [(unknown if s is None else s) for s in group] for name, group in scores.items()}) for unknown in (0.0, 1.0)
    )
    assert 0 <= found.low <= low + 1e-9
    assert high - 1e-9 <= found.high <= len(scores)
    assert total_interval([test._replace(conversation="elsewhere") for test in shuffled]) == found


@given(st.lists(SHARES, min_size=1, max_size=4), st.integers(1, 4), st.integers(2, 4))
def test_no_interval_is_empty_however_alike_the_scores_are(scores: list[float], conversations: int, tests: int) -> None:
    """All tests of a scenario have the same score in all conversations."""
    same = [
        ObservedTest(str(s), str(c), score, score) for c in range(conversations) for s, score in enumerate(scores) for _ in range(tests)
    ]
    found = total_interval(same)
    assert found is not None
    assert found.high - found.low > 0.02
    low, high = found.ends()
    assert float(low) < float(high)


def test_ends_that_are_close_together_have_more_digits() -> None:
    assert Interval(0, 0.004, "tests").ends() == ("0.000", "0.004")
    assert Interval(0, 0.006, "tests").ends() == ("0.00", "0.01")
    assert Interval(5.5, 11, "tests").ends(1, 11 / 100) == ("50.0", "100.0")


def test_more_tests_and_more_conversations_make_it_narrower() -> None:
    mixed: dict[str, list[float | None]] = {name: [0.0, 1.0, 1.0] for name in "abcdef"}
    assert wide(total_interval(observed({name: 4 * group for name, group in mixed.items()}))) < 0.6 * wide(total_interval(observed(mixed)))
    one, other = observed(mixed), observed({name: [1.0, 1.0, 0.5] for name in "abcdef"})
    few, many = ([test._replace(conversation=f"{n}{c}") for n in range(k) for c, x in ((0, one), (1, other)) for test in x] for k in (2, 4))
    assert wide(total_interval(many)) < 0.6 * wide(total_interval(few))


def test_a_conversation_with_more_tests_is_not_another_conversation_for_that() -> None:
    """Histories have 20 questions or 200. All are answered half here, so that nothing tells the histories apart."""
    sizes = (2, 4, 10, 40)
    uneven = [test for number, size in enumerate(sizes) for test in observed({"any": [1.0, 0.0] * size}, f"history {number}")]
    alone = [test._replace(conversation="one") for test in uneven]
    assert wide(total_interval(uneven)) < wide(total_interval(alone))


# Simulations. Eleven scenarios, three tests of each in a conversation, right or wrong. Agents differ from conversation to conversation in
# how well all tests of it go: by a normal deviation of so many logits (the effect). A scenario's rate is the given one, or drawn for each
# case from Beta(0.6, 0.6), where many are easy or hard.

Floats = NDArray[np.float64]

SCENARIOS, TESTS = 11, 3


def cases(
    random: np.random.Generator, number: int, agents: int, conversations: int, effect: float, rate: float | None
) -> tuple[Floats, Floats]:
    """Return the expected score of each case, and the scores in the shape (cases, agents, conversations, scenarios, tests)."""
    skill = scipy.special.logit(random.beta(0.6, 0.6, (number, SCENARIOS)) if rate is None else np.full((number, SCENARIOS), rate))
    luck = random.normal(0, 1, (number, agents, conversations, 1)) * effect
    rates = scipy.special.expit(skill[:, None, None] + luck)
    points, weights = np.polynomial.hermite_e.hermegauss(31)
    truth = (scipy.special.expit(skill[..., None] + effect * points) @ weights / weights.sum()).sum(axis=-1)
    return truth, (random.random((*rates.shape, TESTS)) < rates[..., None]).astype(float)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.05, 0.5, 0.95, None])
@pytest.mark.parametrize(
    ("conversations", "effect"), [(1, 0), *((conversations, effect) for conversations in (3, 4, 6, 10) for effect in (0, 0.5, 1))]
)
def test_an_interval_of_95_percent_holds_the_truth_in_92_to_98_of_100_cases(conversations: int, effect: float, rate: float | None) -> None:
    """With a single conversation, that conversation is the truth, so there is no effect."""
    truth, scores = cases(np.random.default_rng(7), INTERVALS, 1, conversations, effect, rate)
    where = [(str(scenario), str(c)) for c in range(conversations) for scenario in range(SCENARIOS) for _ in range(TESTS)]
    low, high, by = total_intervals([name for name, _ in where], [name for _, name in where], scores.reshape(INTERVALS, -1))
    assert by == ("conversations" if conversations > 1 else "tests")
    assert (high - low).min() > 0.1, "it never collapses"
    assert 0.92 <= ((low <= truth) & (truth <= high)).mean() <= 0.98


@pytest.mark.slow
@pytest.mark.parametrize("effect", [0, 0.5, 1])
@pytest.mark.parametrize("conversations", [3, 4, 6, 10])
@pytest.mark.parametrize(
    "rates", [np.linspace(0.95, 0.05, 45), np.full(45, 0.6), np.repeat([0.98, 0.02], 22)], ids=["decay", "even", "window"]
)
def test_an_interval_over_the_questions_of_whole_conversations_covers_the_truth(rates: Floats, conversations: int, effect: float) -> None:
    """One test of plain facts in each conversation, whose questions are easier or harder by their distance."""
    random = np.random.default_rng(12)
    skill, luck = scipy.special.logit(rates), random.normal(0, 1, (INTERVALS // 4, conversations, 1)) * effect
    points, weights = np.polynomial.hermite_e.hermegauss(31)
    truth = (scipy.special.expit(skill[:, None] + effect * points) @ weights / weights.sum()).mean()
    scores = (random.random((*luck.shape[:2], len(rates))) < scipy.special.expit(skill + luck)).astype(float)
    where = [str(conversation) for conversation in range(conversations) for _ in rates]
    low, high, by = total_intervals(["reach"] * len(where), where, scores.reshape(len(luck), -1))
    assert by == "conversations"
    assert ((low <= truth) & (truth <= high)).mean() >= 0.92
    by_test = total_intervals(["reach"] * conversations, list(map(str, range(conversations))), scores.mean(axis=-1))
    assert (high - low).mean() < 0.95 * (by_test[1] - by_test[0]).mean(), "one score a conversation says less"


@pytest.mark.parametrize("conversations", [1, 4])
def test_one_interval_is_one_of_many(conversations: int) -> None:
    _, scores = cases(np.random.default_rng(8), 5, 1, conversations, 0.5, None)
    places = list(np.ndindex(conversations, SCENARIOS, TESTS))
    low, high, _ = total_intervals([str(s) for _, s, _ in places], [str(c) for c, _, _ in places], scores.reshape(5, -1))
    for number, case in enumerate(scores[:, 0]):
        found = total_interval([ObservedTest(str(s), str(c), case[c, s, t], case[c, s, t]) for c, s, t in places])
        assert found is not None
        assert (found.low, found.high) == pytest.approx((low[number], high[number]))


def differences_of(case: Floats) -> list[Difference]:
    """The differences of two agents from scores of the shape (agents, conversations, scenarios, tests)."""
    return [Difference(str(s), c, value) for (c, s, _), value in np.ndenumerate(case[0] - case[1])]


@pytest.mark.slow
@pytest.mark.parametrize("effect", [0, 0.5, 1])
@pytest.mark.parametrize(("conversations", "attainable"), [(6, 2 / 2**6), (10, 50 / 2**10)])
def test_two_equal_agents_differ_significantly_in_5_of_100_cases(conversations: int, attainable: float, effect: float) -> None:
    """At most 6.5%, and at least half of the level that so many conversations can attain: p is a multiple of 2 / 2**conversations."""
    _, scores = cases(np.random.default_rng(9), COMPARISONS, 2, conversations, effect, None)
    assert attainable / 2 <= fmean(paired_permutation_p(differences_of(case)) < 0.05 for case in scores) <= 0.065


@pytest.mark.slow
def test_a_test_of_tests_says_nothing_about_other_conversations() -> None:
    """Why conversations are flipped: with an effect of one logit, flipping tests finds equal agents different in a third of the cases."""
    _, scores = cases(np.random.default_rng(10), COMPARISONS // 10, 2, 1, 1, None)
    assert fmean(permutation_p(by_test(differences_of(case))) < 0.05 for case in scores) > 0.25


# Two agents.


def of(values: list[float], scenario: str = "colours") -> list[Difference]:
    """Differences of a scenario with one test in each conversation."""
    return [Difference(scenario, number, value) for number, value in enumerate(values)]


def test_a_difference_of_totals_is_the_sum_of_its_parts() -> None:
    differences = [*of([1.0, 0.0, -1.0]), *of([0.5], "jokes")]
    assert by_test(differences) == pytest.approx([1 / 3, 0, -1 / 3, 0.5])
    assert by_conversation(differences) == pytest.approx([1 / 3 + 0.5, 0, -1 / 3])


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


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.2, 1.0]), min_size=1, max_size=8))
def test_conversations_of_one_scenario_are_flipped_by_their_differences(values: list[float]) -> None:
    """With one scenario nothing else can decide between patterns. Each test counts twice, and twice as many of half the size do not."""
    twice = [Difference("colours", each.conversation, each.value) for each in of(values) for _ in range(2)]
    expected = permutation_p(values) if abs(sum(values)) > 1e-9 else 1
    assert paired_permutation_p(of(values)) == paired_permutation_p(twice) == pytest.approx(expected)


@pytest.mark.parametrize(("conversations", "least"), [(1, 1.0), (3, 0.25), (4, 0.125), (5, 0.0625), (6, 0.03125), (10, 2 / 1024)])
def test_so_many_conversations_can_attain_no_smaller_p(conversations: int, least: float) -> None:
    """However many tests they hold, and however much better one agent is in all of them."""
    clear = [Difference(str(scenario), number, 1.0) for number in range(conversations) for scenario in range(11)]
    assert paired_permutation_p(clear) == least
    assert permutation_p(by_test(clear)) < 0.01, "about these tests there is no doubt"


def test_conversations_with_equal_totals_count_by_the_scenarios_in_which_the_agents_seldom_differ() -> None:
    """Five conversations are better, the sixth is better in one scenario and worse in another, where the agents differ more often."""
    clear = [Difference("often", number, 1.0) for number in range(5)] + [Difference("seldom", number, 0.0) for number in range(5)]
    assert paired_permutation_p([*clear, Difference("often", 5, -1.0), Difference("seldom", 5, 1.0)]) == 2 / 2**6
    assert paired_permutation_p([*clear, Difference("often", 5, 1.0), Difference("seldom", 5, -1.0)]) == 4 / 2**6
    assert paired_permutation_p([*clear, Difference("often", 5, 0.0), Difference("seldom", 5, 0.0)]) == 2 / 2**5, "nothing to flip"


def test_agents_that_are_equal_are_not_told_apart() -> None:
    assert permutation_p([0.0] * 40) == paired_permutation_p(of([0.0] * 40)) == paired_permutation_p([]) == 1
    assert permutation_p([]) == 1
    assert paired_permutation_p([*of([1.0] * 6), *of([-1.0] * 6, "jokes")]) == 1
    assert more_conversations([*of([0.0, 0.0]), *of([0.5, -0.5], "jokes")]) is None


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


@pytest.mark.parametrize("agents", [2, 3, 5, 20])
def test_the_least_number_of_conversations_is_the_first_with_which_a_pair_can_be_significant(agents: int) -> None:
    pairs = comb(agents, 2)
    least = least_conversations(pairs)
    smallest = [holm([paired_permutation_p(of([1.0] * number))] * pairs)[0] for number in (least - 1, least)]
    assert smallest[1] < 0.05 <= smallest[0]


def test_more_conversations_by_hand() -> None:
    """A mean difference of 0.2 and a deviation of 0.5: (1.95996 + 0.84162)² x 0.25 / 0.04 = 49.06, and 1.95996² / 2 = 1.92, so 51."""
    values = [0.2 + 0.5 * sqrt(9 / 10) * sign for sign in (1, -1) * 5]
    assert np.std(values, ddof=1) == pytest.approx(0.5)
    assert more_conversations(of(values)) == 51 - 10
    assert more_conversations(of(values), pairs=10) == 88 - 10  # (2.80703 + 0.84162)² x 6.25 + 2.80703² / 2 = 87.1
    assert more_conversations([*of(values), *of(values, "jokes")]) == 51 - 10, "a second scenario that goes alike tells nothing new"


@pytest.mark.slow
@pytest.mark.parametrize(("mean", "needed"), [(0.2, 51), (0.4, 15)])
def test_so_many_conversations_tell_two_agents_apart_in_four_of_five_cases(
    mean: float, needed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of differences with that mean and a deviation of 0.5."""
    monkeypatch.setattr(statistics, "SIGNS", 2_000)
    assert more_conversations(of([mean + 0.5 * sqrt(9 / 10) * sign for sign in (1, -1) * 5])) == needed - 10
    random = np.random.default_rng(6)
    found = [paired_permutation_p(of(random.normal(mean, 0.5, needed).tolist())) < 0.05 for _ in range(COMPARISONS // 2)]
    assert fmean(found) == pytest.approx(0.8, abs=0.04)


def test_no_more_conversations_are_needed_of_agents_that_are_far_apart_unless_they_are_too_few_to_show_it() -> None:
    assert more_conversations(of([1.0] * 6)) == 0
    assert more_conversations(of([1.0] * 3)) == 3
    assert more_conversations(of([1.0] * 6), pairs=3) == 1
    assert paired_permutation_p(of([1.0] * 6)) < 0.05 < paired_permutation_p(of([1.0] * 5))


def test_of_a_single_conversation_its_tests_tell_how_many_more_are_needed_at_least() -> None:
    """One conversation of 20 tests, 11 of them better and 9 worse: as if each further one differed from it by chance alone."""
    one = [Difference("colours", "main", 1.0 if number < 11 else -1.0) for number in range(20)]
    variance = np.var([each.value for each in one], ddof=1) / 20
    assert more_conversations(one) == int(np.ceil(2.80158**2 * variance / 0.1**2 + 1.95996**2 / 2)) - 1
    assert more_conversations([Difference("colours", "main", 1.0)]) == 5
