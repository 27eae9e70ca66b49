"""The tokens that models read and wrote, and their cost at list prices, by part: the agent's models, its embedder, the judge. Also what the
run has cost in all, and how much of that was paid more than once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self, final

from longspan.simulator.base.document import Document, Sentence
from longspan.simulator.measures.measure import GradedTests, Measure
from longspan.simulator.results.result import Result
from longspan.simulator.subject.ledger import Spending, known_cost, tally
from longspan.simulator.suite.manifest import Manifest

__all__ = ["Costs"]


@final
class Costs(Measure):
    """The tokens and dollars that each part used in the run's conversations, and that the judge used afterwards."""

    name = "costs"

    @classmethod
    def of_run(cls, run: GradedTests, read: Mapping[str, Self]) -> Mapping[str, Any]:
        costs = tally([*(entry for transcript in run.own for entry in transcript.used), *run.models])
        return {"costs": costs, "spending": run.spending}

    @classmethod
    def shown(cls, manifest: Manifest, result: Result) -> Document:
        parts = [_told(part, spent) for part, spent in result.costs.items()]
        return Document(lines=[Sentence(line, "cost") for line in [*parts, *_describe_extra(result)]])


def _describe_extra(result: Result) -> Iterator[str]:
    """Yield sentences about money that the run spent outside its turns or more than once."""
    spending, turns = result.spending, known_cost(part.cost_usd for part in result.costs.values())
    if spending is None:
        return
    if spending.again_usd or abs(spending.known_usd - turns) >= 0.00005:
        total = f"${spending.known_usd:.4f}" + (" or more (a price is unknown)" if spending.cost_usd is None else "")
        again = f"; ${spending.again_usd:.4f} of it was paid more than once" if spending.again_usd else ""
        yield f"{total} in all, with checks, experiments and repetitions{again}"
    if spending.unanswered:
        calls = f"{spending.unanswered:,} call{'s'[: spending.unanswered != 1]} ended without a known cost"
        most = "an unknown amount" if spending.possibly_usd is None else f"up to ${spending.possibly_usd:.4f}"
        yield f"{calls}, possibly {most} more"


def _told(part: str, spent: Spending) -> str:
    dollars = "price unknown" if spent.cost_usd is None else f"${spent.cost_usd:.4f}"
    cached = f", {spent.cached_tokens:,} of them from cache" if spent.cached_tokens else ""
    told = spent.input_tokens or spent.output_tokens or not spent.cost_usd  # some agents report their cost without tokens
    return f"{dollars}: {part}" + (f" read {spent.input_tokens:,} tokens{cached}, wrote {spent.output_tokens:,}" if told else "")
