"""The tokens that models read and wrote, and their cost at list prices, by part: the agent's models, its embedder, the judge.

This also gives the total cost of the run, and how much of it was paid more than once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, final

from longspan.simulator.base.document import Document, Sentence
from longspan.simulator.results.measures.measure import GradedTests, Measure
from longspan.simulator.results.result import Result
from longspan.simulator.subject.ledger import Spending, tally_spending
from longspan.simulator.suite.manifest import Manifest

__all__ = ["Costs"]


@final
class Costs(Measure):
    """The tokens and dollars that each part used in the run's conversations, and that the judge used afterwards."""

    name = "costs"

    @classmethod
    def of_run(cls, run: GradedTests, read: Mapping[str, Self]) -> Mapping[str, Any]:
        costs = tally_spending([*(entry for transcript in run.own for entry in transcript.used), *run.models])
        return {"costs": costs, "spending": run.spending}

    @classmethod
    def describe_run(cls, manifest: Manifest, result: Result) -> Document:
        parts = [_describe_part(part, spent) for part, spent in result.costs.items()]
        return Document(lines=[Sentence(line, "cost") for line in [*parts, *result.cost_remarks]])


def _describe_part(part: str, spent: Spending) -> str:
    dollars = "price unknown" if spent.cost_usd is None else f"${spent.cost_usd:.4f}"
    cached = f", {spent.cached_tokens:,} of them from cache" if spent.cached_tokens else ""
    told = spent.input_tokens or spent.output_tokens or not spent.cost_usd  # some agents report cost but no tokens
    return f"{dollars}: {part}" + (f" read {spent.input_tokens:,} tokens{cached}, wrote {spent.output_tokens:,}" if told else "")
