"""What experiments show: each test's score beside its score in its twin or its lesion, and the mean of the differences."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist, fmean
from typing import Annotated, Final, final

from pydantic import BaseModel, ConfigDict, Field

from longspan.simulator.subject.ledger import Spending

__all__ = ["Effect", "TestEffect", "effect_of", "is_shown", "paired_interval"]

LEVEL: Final = 0.95
"""The confidence level of intervals."""

Score = Annotated[float, Field(ge=0, le=1)]
Change = Annotated[float, Field(ge=-1, le=1)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


@final
class TestEffect(_Frozen):
    """A test's `score`, and its score in the experiment, `score_without`; None where it has none. `difference` is the first less the
    second.

    `conversation` is the experiment's, which branches before turn `turn`; None if it has not begun. `reason`: why it has the second.
    """

    test: str
    scenario: str
    conversation: str
    turn: int | None
    score: Score | None
    score_without: Score | None
    difference: Change | None
    reason: str


@final
class Effect(_Frozen):
    """What the experiments of a kind show. `tokens`: those that a lesion leaves. `tests` of them `paired` have both scores; `score`,
    `score_without` and `difference` are their means, None if there are none, and `interval` is the difference's, 95%.

    `share`: the difference as a share of the score, None where the interval includes 0, since nothing is then shown. `turns` and
    `conversation_tokens` are those that were played, `costs` what they took, by part.
    """

    tokens: int | None = None
    paired: int
    score: Score | None
    score_without: Score | None
    difference: Change | None
    interval: tuple[Change, Change] | None
    share: Annotated[float, Field(le=1, allow_inf_nan=False)] | None
    turns: int
    conversation_tokens: int
    costs: dict[str, Spending]
    tests: list[TestEffect]

    @property
    def sentence(self) -> str:
        """What the experiments show, in words."""
        lacking, what = ("without needles", "is memory") if self.tokens is None else (f"with the last {self.tokens:,} tokens", "needs more")
        tests = f"{len(self.tests):,} test{'s' * (len(self.tests) != 1)}"
        if self.score is None or self.score_without is None or self.difference is None or self.interval is None:
            return f"{tests}, none of which has a score both in the run and {lacking}"
        both = f", {self.paired:,} of which have both scores" if self.paired < len(self.tests) else ""
        scores = f"{tests}{both}: {self.score:.2f}, and {self.score_without:.2f} {lacking}"
        low, high = self.interval
        if self.difference < 0:
            return f"{scores}: {-self.difference:.2f} [{-high:.2f}, {-low:.2f}] more"
        share = f" or {self.share:.0%}" if self.share is not None else ""
        return f"{scores}: {self.difference:.2f} [{low:.2f}, {high:.2f}]{share} {what}"


def effect_of(
    tests: Sequence[TestEffect], *, tokens: int | None, turns: int, conversation_tokens: int, costs: dict[str, Spending]
) -> Effect:
    """Return what experiments of a kind show together."""
    pairs = [(each.score, each.score_without) for each in tests if each.score is not None and each.score_without is not None]
    score, without = (fmean(column) for column in zip(*pairs, strict=True)) if pairs else (None, None)
    difference = score - without if score is not None and without is not None else None
    interval = paired_interval([score - without for score, without in pairs]) if pairs else None
    return Effect(
        tokens=tokens,
        paired=len(pairs),
        score=_rounded(score),
        score_without=_rounded(without),
        difference=_rounded(difference),
        interval=interval,
        share=_rounded(difference / score) if difference is not None and score and interval and is_shown(interval) else None,
        turns=turns,
        conversation_tokens=conversation_tokens,
        costs=costs,
        tests=list(tests),
    )


def is_shown(interval: tuple[float, float]) -> bool:
    """Return whether an interval does without 0, so that there is an effect to speak of."""
    low, high = interval
    return low > 0 or high < 0


def paired_interval(differences: Sequence[float]) -> tuple[float, float]:
    """Return the 95% interval of the mean of differences of two scores, each in [-1, 1], over such tests.

    It is that of Bonett and Price (2012) for pairs that are right or wrong: one pair with a difference of 1 and one of -1 are added, so
    that it does not collapse where all pairs are alike. Their formula is the mean and the variance of such pairs, and so holds for scores
    in between.
    """
    known = [*differences, 1.0, -1.0]
    mean = fmean(known)
    half = NormalDist().inv_cdf((1 + LEVEL) / 2) * sqrt(fmean((each - mean) ** 2 for each in known) / len(known))
    return round(max(-1.0, mean - half), 6), round(min(1.0, mean + half), 6)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
