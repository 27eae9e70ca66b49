"""The cost of adding a conversation to an agent's memory, as far as the agent reports it (`added` in traces, `add_s` in `measured`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, Final, Self, final

from longspan.simulator.base.document import Document, Sentence
from longspan.simulator.base.errors import ReplayError
from longspan.simulator.base.integers import is_finite
from longspan.simulator.base.tables import Table, format_decimals
from longspan.simulator.journal.events import Event, Settled
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.journal.transcript import Change, PlayedTurn
from longspan.simulator.results.graded_runs import GradedRun
from longspan.simulator.results.measures.measure import GradedTests, Measure, SideBySide
from longspan.simulator.results.result import Result
from longspan.simulator.suite.manifest import Manifest

__all__ = ["Ingestion", "check_accounts", "figures_of"]

EACH: Final = 1000
"""The number of tokens of conversation that costs are given for."""

QUARTERS: Final = 4
"""The number of parts of a conversation. Comparing the last with the first shows whether the seconds per token grow."""


ADDING: Final = "add_calls_per_1k"
"""The figure that every agent has if it reports how it adds turns."""

TAKES: Final = {
    "add_seconds_per_1k": "adding: seconds",
    "add_calls_per_1k": "calls",
    "add_tokens_per_1k": "tokens",
    "add_usd_per_1k": "dollars",
    "add_growth": "last quarter to first",
    "settle_seconds": "settling: seconds",
    "search_seconds": "a search: seconds",
    "beyond_k": "memories beyond k",
}
"""The cost figures of a memory, with their column headings."""

TAKES_NOTE: Final = "Adding: per 1,000 tokens of conversation. Last quarter to first: the ratio of the seconds that a token takes."


@final
class Ingestion(Measure):
    """The turns of a conversation: their tokens, the number of turns reported as `added` to memory, and the cost of adding them."""

    name = "ingestion"

    def __init__(self) -> None:
        self.turns = self.added = self.tokens = self.calls = 0
        self.model_tokens = 0.0
        self.add_s = self.settle_s = 0.0
        self.cost_usd: float | None = None
        self.searches: list[float] = []
        self.beyond_k = 0.0
        self.tells = False
        self._told: list[tuple[int, float]] = []

    def fold(self, event: Event, change: Change) -> None:
        """Count a turn's cost, or the cost of settling, when the memory finishes adding the turns so far."""
        if isinstance(change, PlayedTurn):
            self._turn(change)
        elif isinstance(event, Settled):
            self._add(event.trace, event.measured or {})

    def _turn(self, turn: PlayedTurn) -> None:
        if turn.reply is None:
            return
        tokens = turn.message.tokens + turn.reply.tokens
        self.turns += 1
        self.tokens += tokens
        measured = turn.reply.measured or {}
        if not turn.reply.asked:  # without an answer, the latency is just the time of adding
            self._told.append((tokens, _number(measured.get("latency_s"))))
        elif "search_s" in measured:
            self.searches.append(_number(measured["search_s"]))
            self.beyond_k += _number((turn.reply.trace or {}).get("beyond_k"))
        self._add(turn.reply.trace, measured)

    def _add(self, trace: Mapping[str, Any] | None, measured: Mapping[str, float]) -> None:
        self.settle_s += _number(measured.get("settle_s"))
        added = (trace or {}).get("added")
        if isinstance(added, Mapping):
            self.tells = True
            self.added += int(_number(added.get("turns")))
            self.calls += int(_number(added.get("calls")))
            self.model_tokens += _number(added.get("tokens"))
            self.add_s += _number(measured.get("add_s"))
            if "cost_usd" in added:
                self.cost_usd = (self.cost_usd or 0.0) + _number(added["cost_usd"])

    @property
    def growth(self) -> float | None:
        """The seconds per token added in the last quarter of the turns told, divided by those in the first; None if unknown."""
        size = len(self._told) // QUARTERS
        if not size:
            return None
        first, last = self._told[:size], self._told[-size:]
        paces = [sum(seconds for _, seconds in part) / max(1, sum(tokens for tokens, _ in part)) for part in (first, last)]
        return paces[1] / paces[0] if paces[0] else None

    @classmethod
    def of_run(cls, run: GradedTests, read: Mapping[str, Self]) -> Mapping[str, Any]:
        return figures_of(read.values())

    @classmethod
    def describe_run(cls, manifest: Manifest, result: Result) -> Document:
        if not (beyond := result.metrics.get("beyond_k")):
            return Document()
        told = (
            f"a search returned {beyond:,.1f} memories more than `k` on average: only the first `k` were used, so the best must come first"
        )
        return Document(lines=[Sentence(told, tone="warning")])

    @classmethod
    def describe_comparison(cls, side: SideBySide) -> Document:
        return Document(tables=[_takes(side)])


def check_accounts(run: RunFolder, read: Mapping[str, Ingestion]) -> None:
    """Check that no turn of a run is counted twice as added to the agent's memory. Raises ReplayError with the journal's path."""
    if (id := _find_added_twice(read, run.manifest.trunks)) is not None:
        found = read[id]
        raise ReplayError(
            f"{run.journal(id)}: the agent reports {found.added} turns added to its memory, but there are {found.turns}, or another "
            "conversation reports them too: costs were counted twice when the run was resumed; play it again for its costs"
        )


def _find_added_twice(found: Mapping[str, Ingestion], trunks: Mapping[str, str]) -> str | None:
    """Return a conversation with inconsistent counts: more added turns than exist, or turns counted elsewhere; None if all are consistent.

    `trunks` maps each branch to its trunk. A single branch may count the trunk's turns, as in runs of 0.3.
    """
    told = {id: each.added for id, each in found.items()}
    for id, each in found.items():
        more, trunk = each.added - each.turns, trunks.get(id, id)
        if more > 0:
            told[trunk] += more
            if trunk == id or told[trunk] > found[trunk].turns:
                return id
    return None


def figures_of(conversations: Iterable[Ingestion]) -> dict[str, float]:
    """Return the costs of a memory over all conversations together; empty if no agent reports any.

    These are the cost of adding 1,000 tokens, and the mean seconds of settling and of a search. If searches returned memories beyond `k`,
    their mean number is included.
    """
    told = list(conversations)
    adding = [each for each in told if each.tells]
    if not adding:
        return {}
    thousands = max(1, sum(each.tokens for each in told)) / EACH
    metrics = {
        "add_seconds_per_1k": sum(each.add_s for each in adding) / thousands,
        "add_calls_per_1k": sum(each.calls for each in adding) / thousands,
        "add_tokens_per_1k": sum(each.model_tokens for each in adding) / thousands,
    }
    costs = [each.cost_usd for each in adding if each.cost_usd is not None]
    if costs:
        metrics["add_usd_per_1k"] = sum(costs) / thousands
    growths = [each.growth for each in told if each.growth is not None]
    if growths:
        metrics["add_growth"] = fmean(growths)
    searches = [seconds for each in told for seconds in each.searches]
    if searches:
        metrics["search_seconds"] = fmean(searches)
        if beyond := sum(each.beyond_k for each in told):
            metrics["beyond_k"] = beyond / len(searches)
    if any(each.settle_s for each in adding):
        metrics["settle_seconds"] = fmean(each.settle_s for each in adding if each.settle_s)
    return {name: round(value, 6) for name, value in metrics.items()}


def _takes(side: SideBySide) -> Table:
    """Return a table of memory costs: adding, settling and searching. It has no rows unless an agent reports adding."""
    means = [(side.called.names[agent], str(column), _means(side.of(agent, column))) for agent, column, _ in side.places]
    told = [each for each in means if ADDING in each[-1]]
    seen = [name for name in TAKES if any(name in figures for *_, figures in told)]
    rows = [
        [agent, span, *("" if name not in figures else format_decimals(figures[name]) for name in seen)] for agent, span, figures in told
    ]
    return Table(title="Memory cost", columns=["agent", "span", *(TAKES[name] for name in seen)], rows=rows, note=TAKES_NOTE)


def _means(runs: Sequence[GradedRun]) -> dict[str, float]:
    """Return the means over runs of the figures that are not about a single scenario."""
    metrics = [run.result.metrics for run in runs]
    names = dict.fromkeys(name for each in metrics for name in each if ": " not in name)
    return {name: fmean(each[name] for each in metrics if name in each) for name in names}


def _number(value: Any) -> float:
    """Return a number from a trace, which is untrusted; 0 for anything but a positive number."""
    return float(value) if is_finite(value) and value > 0 else 0.0
