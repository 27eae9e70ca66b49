"""From judged comparisons to matches and rankings, with warnings."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longspan.scenarios.cream.arena_result import ArenaResult, Check, Comparison, Paired, Rules, Side
from longspan.scenarios.cream.metrics import score_completeness, score_conciseness, score_faithfulness
from longspan.scenarios.cream.ranking import find_cycles, rank_systems

SENTENCES = 4


def compared(source: str, first: str, second: str, held: tuple[int, int]) -> Comparison:
    """Ten facts. Each summary holds the given number of them, all in its first sentence."""
    systems = (first, second)
    cited: list[list[list[int] | None]] = [[[1] if at < count else None for at in range(10)] for count in held]
    sides = [Side(system=system, cited=each) for system, each in zip(systems, cited, strict=True)]
    return Comparison(source=source, systems=systems, facts=[f"fact {at}" for at in range(10)], sides=sides)


def ranked(
    comparisons: Sequence[Comparison], systems: Sequence[str] = "abc", rules: Rules | None = None, checks: Sequence[Check] = ()
) -> ArenaResult:
    pairs = list(dict.fromkeys((each.source, (min(each.systems), max(each.systems))) for each in comparisons))
    if checks:
        pairs = [(source, ("a", "b")) for source in dict.fromkeys(check.source for check in checks)]
    written = {source: {system: ["A sentence."] * SENTENCES for system in systems} for source, _ in pairs}
    rules = rules or Rules(metric="completeness", facts=16, orders=200)
    return rank_systems(rules, judge="j", systems=list(systems), sentences=written, pairs=pairs, comparisons=comparisons, checks=checks)


def order(result: ArenaResult) -> list[str]:
    return [each.system for each in result.standings]


def test_metrics_count_distinct_facts_and_sentences() -> None:
    cited = [[1, 2], [2], None, []]
    assert score_completeness(cited) == 3 / 4, "a fact that is held counts, whether sentences were named for it or not"
    assert score_conciseness(cited, 4) == 2 / 4
    assert score_faithfulness([None, "wrong name", None]) == 2 / 3
    assert [score_completeness([]), score_conciseness(cited, 0), score_conciseness([], 3), score_faithfulness([])] == [None] * 4


@given(st.lists(st.none() | st.lists(st.integers(1, 6), max_size=8), max_size=12))
def test_metrics_are_shares(cited: list[list[int] | None]) -> None:
    for share in (score_completeness(cited), score_conciseness(cited, 6)):
        assert share is None or 0 <= share <= 1


def test_both_ways_round_make_one_match_of_their_mean() -> None:
    result = ranked([compared("s", "a", "b", (5, 6)), compared("s", "b", "a", (4, 7))], "ab")
    (match,) = result.matches
    assert (match.systems, match.of, match.points) == (("a", "b"), 2, 1)
    assert match.scores == pytest.approx((0.6, 0.5))
    assert order(result) == ["a", "b"]
    assert (result.standings[0].elo, result.standings[0].wins) == (1016, 1)


def test_an_undecided_comparison_counts_for_nobody() -> None:
    failed = Comparison(source="s", systems=("b", "a"), facts=["one"], undecided="the judge failed")
    result = ranked([compared("s", "a", "b", (5, 4)), failed], "ab")
    assert [(match.of, match.scores) for match in result.matches] == [(1, (0.5, 0.4))]
    assert any(each.startswith("The judge did not decide 1 of 2 comparisons, which do not count: ") for each in result.warnings)
    none = ranked([failed], "ab")
    assert none.matches == []
    assert [(each.elo, each.score) for each in none.standings] == [(1000, None)] * 2
    assert any("There was no match" in warning for warning in none.warnings)
    assert any(warning.startswith("1 of 1 pairs of summaries have no score") for warning in none.warnings)


def test_faithfulness_rates_summaries_that_were_checked_one_by_one() -> None:
    checks = [
        Check(source="s", system="a", errors=[None, "no"]),
        Check(source="s", system="b", errors=[None, None]),
        Check(source="t", system="a", undecided="the judge failed"),
        Check(source="t", system="b", errors=[None]),
    ]
    result = ranked([], "ab", Rules(metric="faithfulness", facts=16, orders=10), checks)
    assert [(match.source, match.scores, match.points) for match in result.matches] == [("s", (0.5, 1.0), 0)]


def test_a_match_for_the_means_of_all_sources() -> None:
    """b wins two sources by a little, a one by much."""
    comparisons = [compared("s", "a", "b", (1, 2)), compared("t", "a", "b", (1, 2)), compared("u", "a", "b", (9, 0))]
    assert order(ranked(comparisons, "ab")) == ["b", "a"]
    result = ranked(comparisons, "ab", Rules(metric="completeness", facts=16, match="aggregate", orders=10))
    assert order(result) == ["a", "b"]
    assert [(match.source, match.of) for match in result.matches] == [(None, 3)]


def test_the_order_of_matches_is_as_asked_for() -> None:
    comparisons = [compared(source, *pair, (5, 4)) for source in "st" for pair in (("a", "b"), ("a", "c"), ("b", "c"))]
    played = {}
    for way in ("sources", "pairs", "random"):
        rules = Rules.model_validate({"metric": "completeness", "facts": 16, "order": way, "orders": 2})
        played[way] = [(match.source, *match.systems) for match in ranked(comparisons, rules=rules).matches]
    assert [match[0] for match in played["sources"]] == [*"sss", *"ttt"]
    assert [match[0] for match in played["pairs"]] == [*"ststst"]
    assert sorted(played["random"]) == sorted(played["sources"])
    assert played["random"] not in (played["sources"], played["pairs"])


def test_a_draw_within_the_tolerance() -> None:
    result = ranked([compared("s", "a", "b", (5, 6))], "ab", Rules(metric="completeness", facts=16, draw=0.1, orders=5))
    assert [(each.draws, each.elo) for each in result.standings] == [(1, 1000)] * 2


def test_a_round_of_winners_is_told() -> None:
    comparisons = [compared(source, *pair, (6, 4)) for source in "st" for pair in (("a", "b"), ("b", "c"), ("c", "a"))]
    warnings = ranked(comparisons).warnings
    assert any("not transitive: a beats b beats c beats a" in warning for warning in warnings)
    assert any("not stable" in warning for warning in warnings)
    straight = [compared(source, *pair, (6, 4)) for source in "st" for pair in (("a", "b"), ("b", "c"), ("a", "c"))]
    assert not any("transitive" in warning or "stable" in warning for warning in ranked(straight).warnings)


@given(st.permutations("abcdef"), st.data())
def test_a_ranking_has_no_rounds(strength: list[str], data: st.DataObject) -> None:
    held = [
        Paired(source="s", systems=(one, other), scores=(0, 0), of=1, points=data.draw(st.sampled_from([0.5, 1.0])))
        for at, one in enumerate(strength)
        for other in strength[at + 1 :]
    ]
    assert find_cycles(held) == []


def test_systems_that_never_met_are_told() -> None:
    comparisons = [compared("s", "a", "b", (6, 4)), compared("t", "c", "d", (6, 4))]
    result = ranked(comparisons, "abcd")
    assert any("never met the others" in warning for warning in result.warnings)
    assert {each.strength for each in result.standings} == {None}


def test_a_ranking_that_hangs_on_few_sources_is_told() -> None:
    comparisons = [compared(f"s{n}", "a", "b", (6, 4) if n % 2 or n == 0 else (4, 6)) for n in range(9)]
    assert any("b is ahead of a in" in warning and "resamples of the sources" in warning for warning in ranked(comparisons, "ab").warnings)


def test_where_the_mean_score_says_otherwise_it_is_told() -> None:
    """The case of the paper's completeness: who wins the match has the lower mean."""
    result = ranked([compared("s", "a", "b", (5, 4)), compared("s", "a", "c", (6, 9)), compared("s", "b", "c", (8, 9))])
    assert order(result) == ["c", "a", "b"]
    assert "b is ahead of a by the mean score" in result.warnings
