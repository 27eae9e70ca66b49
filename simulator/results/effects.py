"""What experiments show: each test's score beside its score in its twin or its lesion, and the mean of the differences."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist, fmean
from typing import Annotated, Final, final

from pydantic import BaseModel, ConfigDict, Field

from longspan.simulator.subject.ledger import Spending

__all__ = ["Effect", "TestEffect", "is_shown", "paired_interval"]

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
