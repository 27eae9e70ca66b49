"""What came out of an arena: every comparison with its facts, the matches, the ratings. Written as JSON, shown as a page."""

from __future__ import annotations

from math import fsum
from typing import Literal, final

from pydantic import BaseModel, ConfigDict

from longspan.simulator.arena.metrics import Metric, completeness, conciseness, faithfulness

__all__ = ["Check", "Comparison", "Order", "Paired", "Result", "Rules", "Side", "Standing", "mean", "scored"]

Order = Literal["sources", "pairs", "random"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


@final
class Rules(_Frozen):
    """How an arena is held. `facts`: how many key facts are asked for at most; `match`: a match for each source, or one of the means
    over all; `draw`: scores that differ by no more are a draw; `order` of the matches; `orders`: how many random ones are averaged."""

    metric: Metric
    facts: int
    match: Literal["source", "aggregate"] = "source"
    draw: float = 0.0
    k: float = 32.0
    start: float = 1000.0
    order: Order = "sources"
    orders: int = 1000
    seed: int = 0


@final
class Side(_Frozen):
    """What a system's summary holds of a comparison's facts: for each the numbers of its sentences, from 1; None where it lacks it."""

    system: str
    cited: list[list[int] | None]


@final
class Comparison(_Frozen):
    """Two summaries of a source, concatenated in the order of `systems`, and the key facts of both. `sides` is empty where the judge
    did not decide, and `undecided` says why."""

    source: str
    systems: tuple[str, str]
    facts: list[str] = []
    sides: list[Side] = []
    undecided: str = ""


@final
class Check(_Frozen):
    """A summary's sentences against the source: for each what is wrong, None where nothing is. `undecided` says why nobody knows."""

    source: str
    system: str
    errors: list[str | None] = []
    undecided: str = ""


@final
class Paired(_Frozen):
    """The scores of two systems on a source, or over all (`source` None), each the mean of `of` comparisons; what they lead to."""

    source: str | None
    systems: tuple[str, str]
    scores: tuple[float, float]
    of: int
    points: float


@final
class Standing(_Frozen):
    """A system's place. `elo`: its rating in the order that was chosen; `mean`, `low` and `high` those over random orders, with the
    interval that holds 95 % of them; `strength` the Bradley-Terry rating, with its interval over the sources; None where there is
    none, or no finite one. `score`: the mean of its scores over its matches."""

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
class Result(_Frozen):
    """An arena's result. `sentences`: those of each summary, by source and system. `standings`: highest mean rating first.
    `warnings` say where the ranking cannot be relied on, `notes` what was left out."""

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
        """How many comparisons, or checks, the judge did not decide."""
        return sum(bool(each.undecided) for each in self.comparisons) + sum(bool(each.undecided) for each in self.checks)

    def score(self, comparison: Comparison, number: int) -> float | None:
        """The score of a comparison's side; that of faithfulness is none of a comparison's."""
        side = comparison.sides[number]
        if self.rules.metric == "completeness":
            return completeness(side.cited)
        return conciseness(side.cited, len(self.sentences[comparison.source][side.system]))


def scored(check: Check) -> float | None:
    """The faithfulness of a summary that was checked; None where nobody knows."""
    return None if check.undecided else faithfulness(check.errors)


def mean(values: list[float]) -> float:
    """The mean, in whatever order the values come."""
    return fsum(values) / len(values)
