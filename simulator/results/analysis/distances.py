"""The needles of questions, their distances, and spans: in charged tokens, and with this agent's replies."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from statistics import fmean, median
from typing import Final, NamedTuple, final

from longspan.simulator.base.sizes import format_tokens
from longspan.simulator.journal.transcript import Evidence
from longspan.simulator.results.result import Result, TestResult

__all__ = [
    "MAX_TOKENS",
    "NARROW",
    "Distances",
    "Need",
    "PlacedQuestion",
    "Point",
    "Range",
    "describe_narrow_scenarios",
    "find_needs",
    "graded_points",
    "question_scores",
    "questions_with_needs",
    "range_of",
    "spans_kept",
    "spans_said",
]

NARROW: Final = 0.2
"""The share of the span that counts as narrow: a scenario whose evidence distances all lie within it occurs only at some distances."""

MAX_TOKENS: Final = 10**12
"""The largest credible distance in tokens. A forged journal may claim any number."""

NAMED: Final = 3
"""The number of tests that a sentence names; it counts the others."""


@final
class Need(NamedTuple):
    """Evidence that a right answer to the question of a `turn` requires. It is one needle, or any one of several that state the same fact
    (`pairs`)."""

    turn: int
    pairs: Sequence[Evidence]

    @property
    def nearest(self) -> Evidence:
        """The needle that comes first on the way back from the question."""
        return min(self.pairs, key=lambda pair: pair.tokens)


@final
class PlacedQuestion(NamedTuple):
    """A question, by its turn, and its evidence distance in tokens: how far back a memory must reach for a right answer.

    This is the distance to the furthest needed `needle`, by its turn. If one of several needles is enough, the nearest counts. `tokens`
    counts the agent's replies at their actual length, `dealt` at the length charged to every agent. In results of 0.2, which charged
    nothing, `dealt` has the actual length.
    """

    turn: int
    tokens: int
    dealt: int
    needle: int


@final
class Point(NamedTuple):
    """A graded question, by its turn.

    It has the evidence distance in tokens with actual replies, its `share` of the span in charged tokens, and the score, None if undecided.
    `share` is 0 for a test without a span, or without filler for it.
    """

    test: str
    scenario: str
    conversation: str
    distance: int
    share: float
    score: float | None
    chance: float
    turn: int

    @property
    def lowest(self) -> float:
        """The score, or its lower bound if undecided."""
        return 0.0 if self.score is None else self.score

    @property
    def highest(self) -> float:
        """The score, or its upper bound if undecided."""
        return 1.0 if self.score is None else self.score


@final
class Range(NamedTuple):
    """The median, the minimum and the maximum of values."""

    median: float
    low: float
    high: float


def questions_with_needs(test: TestResult) -> list[PlacedQuestion]:
    """Return the questions of a test that need a needle, in the order they were asked."""
    furthest: dict[int, Evidence] = {}
    for need in find_needs(test):
        pair = need.nearest
        if (known := furthest.get(need.turn)) is None or pair.tokens > known.tokens:
            furthest[need.turn] = pair
    return [_place_question(furthest[turn]) for turn in sorted(furthest)]


def find_needs(test: TestResult) -> list[Need]:
    """Return the evidence that right answers to a test's questions require."""
    found: dict[tuple[int, str, int], list[Evidence]] = {}
    for place, pair in enumerate(test.evidence):
        if pair.needed:
            key = ("needle", place) if pair.choice is None else ("choice", pair.choice)
            found.setdefault((pair.question_turn, *key), []).append(pair)
    return [Need(turn, pairs) for (turn, _, _), pairs in found.items()]


def _place_question(pair: Evidence) -> PlacedQuestion:
    dealt = pair.tokens if pair.dealt is None else pair.dealt
    return PlacedQuestion(pair.question_turn, _clip_tokens(pair.tokens), _clip_tokens(dealt), pair.needle_turn)


def _clip_tokens(tokens: int) -> int:
    return min(max(0, tokens), MAX_TOKENS)


def graded_points(tests: Iterable[TestResult], span: int) -> list[Point]:
    """Return the graded questions of tests.

    If a test's items name their turns, each question has the mean score of its items. Otherwise the last question has the test's score. A
    test whose questions need no needle has no graded question.
    """
    return [point for test in tests for point in _points(test, span)]


def _points(test: TestResult, span: int) -> Iterator[Point]:
    questions = {each.turn: each for each in questions_with_needs(test)}
    if not questions:
        return
    for turn, score in (_scores_by_turn(test, questions) or {max(questions): test.score}).items():
        yield Point(
            test=test.id,
            scenario=test.scenario,
            conversation=test.conversation or "",
            distance=questions[turn].tokens,
            share=questions[turn].dealt / span if span and test.exempt not in ("alone", "isolated") else 0.0,
            score=score,
            chance=test.chance,
            turn=turn,
        )


def _scores_by_turn(test: TestResult, questions: Collection[int]) -> dict[int, float | None]:
    """Return the scores of the questions that the test's items name, by turn: None if one of a question's items is undecided."""
    items: dict[int, list[float | None]] = {}
    for item in test.items if test.correction is None else ():
        if item.turn is not None and item.turn in questions:
            items.setdefault(item.turn, []).append(item.score)
    decided = {turn: [score for score in scores if score is not None] for turn, scores in items.items()}
    return {turn: fmean(scores) if len(scores) == len(items[turn]) else None for turn, scores in decided.items()}


def question_scores(test: TestResult) -> dict[int, float | None]:
    """Return the score of each question that needs a needle, by its turn: the score of its items, or else of the test."""
    questions = {need.turn for need in find_needs(test)}
    return dict.fromkeys(questions, test.score) | _scores_by_turn(test, questions)


# ---- in tables


@final
class Distances(NamedTuple):
    """The evidence distances of some tests' questions, in tokens with actual replies and as shares of the span in charged tokens.

    Both are None without questions.
    """

    tokens: Range | None
    shares: Range | None

    @classmethod
    def of(cls, tests: Iterable[TestResult], span: int) -> Distances:
        found = [(each, test.exempt == "alone") for test in tests for each in questions_with_needs(test)]
        tokens = range_of(each.tokens for each, _ in found)
        return cls(tokens, range_of(each.dealt / span for each, alone in found if span and not alone))

    @property
    def in_tokens(self) -> str:
        """The median and the range, such as "1.2k (812–1.5k)"; a dash without questions."""
        return _text(self.tokens, format_tokens, "")

    @property
    def of_span(self) -> str:
        """The median and the range of the shares, such as "60% (5–94)"."""
        return _text(self.shares, lambda share: f"{100 * share:.0f}", "%")


def range_of(values: Iterable[float]) -> Range | None:
    """Return the median and the range of values; None without values."""
    ordered = sorted(values)
    return Range(median(ordered), ordered[0], ordered[-1]) if ordered else None


def _text(found: Range | None, figure: Callable[[float], str], unit: str) -> str:
    if found is None:
        return "–"
    middle, low, high = map(figure, found)
    return f"{middle}{unit}" if low == high else f"{middle}{unit} ({low}–{high})"


# ---- in sentences


def spans_kept(result: Result) -> str | None:
    """State in one sentence whether all tests kept their span in charged tokens, or which tests did not. None if no test has a span."""
    tests = [test for test in result.tests if test.exempt != "alone"]
    if not tests:
        return None
    broken = [test for test in tests if test.certified is False]
    if not broken:
        return "All tests kept their span in charged tokens."
    late = [test for test in broken if test.span_used]
    parts = [f"beyond it: {_names(late)}"] if late else []
    if unasked := [test for test in broken if not test.span_used]:
        parts.append(f"without a question that was asked: {_names(unasked)}")
    return f"{len(tests) - len(broken)} of {len(tests)} tests kept their span in charged tokens; {'; '.join(parts)}."


def _names(tests: Sequence[TestResult]) -> str:
    more = f" and {len(tests) - NAMED} more" if len(tests) > NAMED else ""
    return ", ".join(test.id for test in tests[:NAMED]) + more


def spans_said(result: Result) -> str | None:
    """State in one sentence the median length of the tests' spans in charged tokens, and with this agent's replies.

    None if no test with a span asked a question.
    """
    tests = [test for test in result.tests if test.exempt != "alone" and test.span_used]
    said = range_of(test.span_used for test in tests)
    if said is None:
        return None
    ranged = f"{said.median:,.0f} tokens at the median ({said.low:,.0f} to {said.high:,.0f})"
    dealt = range_of(test.span_dealt for test in tests if test.span_dealt)
    if dealt is None:
        return f"With this agent's replies, a test's span is {ranged}."
    return f"A test's span is {dealt.median:,.0f} charged tokens at the median; with this agent's replies, it is {ranged}."


def describe_narrow_scenarios(found: Iterable[Point]) -> str | None:
    """Name in one sentence the scenarios that occur only at some distances, within `NARROW` of the span; None without any.

    In such a scenario, difficulty and distance cannot be separated.
    """
    shares: dict[str, list[float]] = {}
    for point in found:
        if point.share:
            shares.setdefault(point.scenario, []).append(point.share)
    places = {name: (min(values), max(values)) for name, values in sorted(shares.items()) if max(values) - min(values) < NARROW}
    if not places:
        return None
    listed = ", ".join(f"{name} ({_places(low, high)})" for name, (low, high) in places.items())
    return f"Only at some distances of the span, so distance and difficulty cannot be separated: {listed}"


def _places(low: float, high: float) -> str:
    return f"{low:.0%}" if f"{low:.0%}" == f"{high:.0%}" else f"{100 * low:.0f}–{high:.0%}"
