"""The input of an agent's model: the memories requested, the context allowed, and the tokens of prompts.

The tokens come from traces (`prompt_tokens`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from statistics import fmean
from typing import Any, Final, NamedTuple, Self, final

from longspan.simulator.base.document import Data, Document, Sentence
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.integers import is_finite
from longspan.simulator.base.sizes import format_tokens, parse_size
from longspan.simulator.base.tables import Table
from longspan.simulator.journal.events import Event
from longspan.simulator.journal.transcript import Change, PlayedTurn
from longspan.simulator.results.graded_runs import Column
from longspan.simulator.results.measures.group_tables import place_columns
from longspan.simulator.results.measures.measure import GradedTests, Measure, SideBySide
from longspan.simulator.results.result import Result, TestResult
from longspan.simulator.suite.agent_spec import AgentSpec
from longspan.simulator.suite.manifest import Manifest

__all__ = ["Shown"]

MEAN: Final = "prompt_tokens_mean"
MOST: Final = "prompt_tokens_most"
"""The names of the figures. An agent that does not report prompts has none."""

NOTE: Final = (
    "The input of the answering model: k is the number of memories requested, context the maximum tokens of its prompt and answer by "
    "its spec, and the rest are the tokens of its prompts. Scores of memories with different inputs are not a fair comparison."
)


@final
class _Allowance(NamedTuple):
    """The number of memories that an agent requested, and the maximum tokens of its model's prompt and answer; None if unknown."""

    k: int | None
    context: int | None


@final
class Shown(Measure):
    """The tokens of the prompts behind an agent's replies."""

    name = "shown"

    def __init__(self) -> None:
        self.replies = 0
        self.tokens = self.most = 0.0

    def fold(self, event: Event, change: Change) -> None:
        """Count a reply's prompt."""
        if isinstance(change, PlayedTurn) and change.reply is not None and change.reply.asked:
            tokens = (change.reply.trace or {}).get("prompt_tokens")
            if is_finite(tokens) and tokens > 0:
                self.replies += 1
                self.tokens += tokens
                self.most = max(self.most, tokens)

    @classmethod
    def of_run(cls, run: GradedTests, read: Mapping[str, Self]) -> Mapping[str, Any]:
        own = [read[id] for id in run.manifest.conversations if id in read]
        replies = sum(each.replies for each in own)
        if not replies:
            return {}
        return {MEAN: round(sum(each.tokens for each in own) / replies, 1), MOST: max(each.most for each in own)}

    @classmethod
    def describe_run(cls, manifest: Manifest, result: Result) -> Document:
        if MEAN not in result.metrics:
            return Document()
        allowed = _allowance(manifest, result.tests)
        given = [*([f"k {allowed.k}"] if allowed.k else []), *([f"context {format_tokens(allowed.context)}"] if allowed.context else [])]
        tokens = f"{result.metrics[MEAN]:,.0f} tokens a reply on average, {result.metrics[MOST]:,.0f} at most"
        allowed_text = f" ({', '.join(given)})" if given else ""
        return Document(lines=[Sentence(f"input of the answering model: {tokens}{allowed_text}")])

    @classmethod
    def describe_comparison(cls, side: SideBySide) -> Document:
        rows, data = [], []
        for agent, column, _ in side.places:
            allowed, mean, most = _pool_allowance(side, agent, column)
            if allowed.k is None and mean is None:
                continue
            told = ["–" if each is None else f"{each:,.0f}" for each in (mean, most)]
            context = "–" if allowed.context is None else format_tokens(allowed.context)
            rows.append([side.called.names[agent], str(column), "–" if allowed.k is None else f"{allowed.k:,}", context, *told])
            data.append(place_columns(column, agent=agent) | allowed._asdict() | {MEAN: mean, MOST: most})
        columns = ["agent", "span", "k", "context", "prompt: mean tokens", "most tokens"]
        table = Table(title="Input of the answering model", columns=columns, rows=rows, note=NOTE)
        kinds = {"k": int, "context": int, MEAN: float, MOST: float}
        differ = len({row[2] for row in rows}) > 1 or any(cell != "–" for row in rows for cell in row[3:])
        return Document(leading=[table] if differ else [], leading_data=[Data("shown", kinds, data)] if data else [])


def _allowance(manifest: Manifest, tests: list[TestResult]) -> _Allowance:
    """Return the context that an agent's spec allows, and the number of memories that it requested according to its traces."""
    k = max((pair.k or 0 for test in tests for pair in test.evidence), default=0) or None
    with suppress(InputError):  # an imported run's agent has the name in its file
        options = AgentSpec.parse(manifest.agent).options
        return _Allowance(k, parse_size(options["context"]) if "context" in options else None)
    return _Allowance(k, None)


def _pool_allowance(side: SideBySide, agent: str, column: Column) -> tuple[_Allowance, float | None, float | None]:
    """Return an agent's allowance in a column, and the mean and the maximum tokens of its prompts over its runs."""
    runs = side.of(agent, column)
    told = [run.result.metrics for run in runs if MEAN in run.result.metrics and MOST in run.result.metrics]
    allowed = _allowance(runs[0].manifest, [test for run in runs for test in run.result.tests])
    return allowed, fmean(each[MEAN] for each in told) if told else None, max((each[MOST] for each in told), default=None)
