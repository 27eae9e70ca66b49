"""The result of an arena: comparisons with their facts, matches and ratings. Written as JSON and shown as a page."""

from __future__ import annotations

from math import fsum
from typing import Literal, final

from pydantic import BaseModel, ConfigDict

from longspan.scenarios.cream.metrics import Metric, score_completeness, score_conciseness, score_faithfulness

__all__ = ["ArenaResult", "Check", "Comparison", "Extraction", "Order", "Paired", "Rules", "Side", "Standing", "check_score", "exact_mean"]

Order = Literal["sources", "pairs", "random"]

Extraction = Literal["pair", "summary"]
"""When key facts are named: once for a pair in an order or, as in the paper, anew for each of its summaries."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


@final
class Rules(_Frozen):
    """The rules of an arena.

    `facts` is the maximum number of key facts, `extraction` says when they are named. `match`: one match per source, or a single match of
    the mean scores. `draw`: the largest difference in score that is a draw. `order`: the order of the matches. `orders`: the number of
    random orders to average over.
    """

    metric: Metric
    facts: int
    extraction: Extraction = "pair"
    match: Literal["source", "aggregate"] = "source"
    draw: float = 0.0
    k: float = 32.0
    start: float = 1000.0
    order: Order = "sources"
    orders: int = 1000
    seed: int = 0


@final
class Side(_Frozen):
    """The facts of a comparison in one system's summary: for each, the numbers of its sentences, from 1, or None if the summary lacks it.

    `facts` are the facts named for this summary alone. If there are none, the comparison's facts apply.
    """

    system: str
    cited: list[list[int] | None]
    facts: list[str] = []


@final
class Comparison(_Frozen):
    """Two summaries of a source, concatenated in the order of `systems`, and the key facts of both. If the judge did not decide, `sides` is
    empty and `undecided` gives the reason."""

    source: str
    systems: tuple[str, str]
    facts: list[str] = []
    sides: list[Side] = []
    undecided: str = ""


@final
class Check(_Frozen):
    """A summary checked against its source: the error of each sentence, or None. If the judge did not decide, `undecided` gives the
    reason."""

    source: str
    system: str
    errors: list[str | None] = []
    undecided: str = ""


@final
class Paired(_Frozen):
    """A match of two systems on a source, or over all sources (`source` None). A score is the mean of `of` comparisons; `points` are the
    first system's."""

    source: str | None
    systems: tuple[str, str]
    scores: tuple[float, float]
    of: int
    points: float


@final
class Standing(_Frozen):
    """A system's place in the ranking.

    `elo` is the rating in the chosen order. `mean`, `low` and `high` are the mean over random orders with its 95% interval.
    `strength` is the Bradley-Terry rating with its interval over sources, or None without a finite one. `score` is the mean
    score over its matches.
    """

    system: str
    elo: float
    mean: float
    low: float
    high: float
    strength: float | None
    strength_low: float | None
    strength_high: float | None
    wins: int
    draws: int
    losses: int
    score: float | None


@final
class ArenaResult(_Frozen):
    """An arena's result.

    `sentences` holds the sentences of each summary, by source and system. `standings` have the highest mean rating first. `warnings` say
    where the ranking is unreliable, and `notes` list omissions.
    """

    format: Literal[1] = 1
    judge: str
    rules: Rules
    systems: list[str]
    sentences: dict[str, dict[str, list[str]]]
    comparisons: list[Comparison]
    checks: list[Check]
    matches: list[Paired]
    standings: list[Standing]
    warnings: list[str]
    notes: list[str]

    @property
    def undecided(self) -> int:
        """The number of comparisons and checks that the judge did not decide."""
        return sum(bool(reason) for reason in self.undecided_reasons)

    @property
    def undecided_reasons(self) -> list[str]:
        """The reasons why comparisons and checks were not decided; empty strings for the decided ones."""
        return [*(comparison.undecided for comparison in self.comparisons), *(check.undecided for check in self.checks)]

    def score(self, comparison: Comparison, number: int) -> float | None:
        """Return the completeness or conciseness of a comparison's side."""
        side = comparison.sides[number]
        if self.rules.metric == "completeness":
            return score_completeness(side.cited)
        return score_conciseness(side.cited, len(self.sentences[comparison.source][side.system]))


def check_score(check: Check) -> float | None:
    """Return the faithfulness of a checked summary, or None if undecided."""
    return None if check.undecided else score_faithfulness(check.errors)


def exact_mean(values: list[float]) -> float:
    """Return the mean. It does not depend on the order of the values."""
    return fsum(values) / len(values)
