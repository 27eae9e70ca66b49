"""The effects of experiments: each test's score with and without the part that an experiment removes, and the mean difference."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist, fmean
from typing import Annotated, Final, final

from pydantic import BaseModel, ConfigDict, Field

from longspan.simulator.subject.ledger import Spending

__all__ = ["Effect", "Paired", "ScenarioEffect", "TestEffect", "difference_interval", "is_shown"]

LEVEL: Final = 0.95
"""The confidence level of intervals."""

Score = Annotated[float, Field(ge=0, le=1)]
Change = Annotated[float, Field(ge=-1, le=1)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


@final
class TestEffect(_Frozen):
    """A test's score in the run and in an experiment.

    `score` is the test's score, `score_without` its score in the experiment, and `difference` the first minus the second; each is None if
    unknown. `conversation` is the experiment's conversation, which branches off before turn `turn` (None if the experiment has not begun).
    `reason` explains `score_without`.
    """

    test: str
    scenario: str
    conversation: str
    turn: int | None
    score: Score | None
    score_without: Score | None
    difference: Change | None
    reason: str


class Paired(_Frozen):
    """The mean scores of the tests with both scores, and their mean difference.

    `paired` is the number of these tests; without any, the other values are None. `interval` is the 95% interval of the difference. `p` is
    the two-sided p-value of a permutation test that swaps the two scores of each test. Both generalise to similar tests in this
    conversation.
    """

    paired: int
    score: Score | None
    score_without: Score | None
    difference: Change | None
    interval: tuple[Change, Change] | None
    p: Annotated[float, Field(ge=0, le=1)] | None = None


@final
class ScenarioEffect(Paired):
    """The effect of one kind of experiment on the tests of a scenario."""


@final
class Effect(Paired):
    """The effect of one kind of experiment.

    `tokens` is how many tokens a lesion leaves. `share` is the difference as a share of the score; None if the interval includes 0, since
    the effect is then not significant. `scenarios` has the effect by scenario. `turns` and `conversation_tokens` count the turns and tokens
    played in the experiments. `costs` has their cost by part.
    """

    tokens: int | None = None
    scenarios: dict[str, ScenarioEffect] = {}
    share: Annotated[float, Field(le=1, allow_inf_nan=False)] | None
    turns: int
    conversation_tokens: int
    costs: dict[str, Spending]
    tests: list[TestEffect]


def is_shown(interval: tuple[float, float]) -> bool:
    """Return whether an interval excludes 0, so that the effect is significant."""
    low, high = interval
    return low > 0 or high < 0


def difference_interval(differences: Sequence[float]) -> tuple[float, float]:
    """Return the 95% interval of the mean difference between two scores, over tests like these. Each difference is in [-1, 1].

    This is the interval of Bonett and Price (2012) for pairs that are right or wrong. It adds one pair with a difference of 1 and one with
    -1, so that it does not collapse where all pairs are alike. The formula uses only the mean and the variance of the pairs, so it also
    applies to partial scores.
    """
    known = [*differences, 1.0, -1.0]
    mean = fmean(known)
    half = NormalDist().inv_cdf((1 + LEVEL) / 2) * sqrt(fmean((each - mean) ** 2 for each in known) / len(known))
    return round(max(-1.0, mean - half), 6), round(min(1.0, mean + half), 6)
