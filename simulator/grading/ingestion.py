"""What it took to add a conversation to an agent's memory, as far as the agent tells (`added` in traces, `add_s` in `measured`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any, Final, final

from longspan.simulator.base.integers import is_finite
from longspan.simulator.journal.events import Settled
from longspan.simulator.journal.transcript import Turn

__all__ = ["Ingestion", "ingestion_metrics", "told_twice"]

EACH: Final = 1000
"""How many tokens of conversation figures are for."""

QUARTERS: Final = 4
"""Of the seconds for each token, those in the last part of a conversation are compared with those in the first."""


@final
class Ingestion:
    """The turns of a conversation: their tokens, how many the agent says that it `added` to its memory, and what that took."""

    def __init__(self) -> None:
        self.turns = self.added = self.tokens = self.calls = 0
        self.model_tokens = 0.0
        self.add_s = self.settle_s = 0.0
        self.cost_usd: float | None = None
        self.searches: list[float] = []
        self.beyond_k = 0.0
        self.tells = False
        self._told: list[tuple[int, float]] = []

    def add(self, turn: Turn) -> None:
        """Add the next turn."""
        if turn.reply is None:
            return
        tokens = turn.message.tokens + turn.reply.tokens
        self.turns += 1
        self.tokens += tokens
        measured = turn.reply.measured or {}
        if not turn.reply.asked:
            self._told.append((tokens, _number(measured.get("latency_s"))))
        elif "search_s" in measured:
            self.searches.append(_number(measured["search_s"]))
            self.beyond_k += _number((turn.reply.trace or {}).get("beyond_k"))
        self._add(turn.reply.trace, measured)

    def settle(self, event: Settled) -> None:
        """Add what it took to finish adding the turns so far."""
        self._add(event.trace, event.measured or {})

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
        """How many times as long a token took in the last quarter of what was told as in the first; None if that is unknown."""
        size = len(self._told) // QUARTERS
        if not size:
            return None
        first, last = self._told[:size], self._told[-size:]
        paces = [sum(seconds for _, seconds in part) / max(1, sum(tokens for tokens, _ in part)) for part in (first, last)]
        return paces[1] / paces[0] if paces[0] else None


def told_twice(found: Mapping[str, Ingestion], trunks: Mapping[str, str]) -> str | None:
    """Return the conversation that tells of turns as added that it does not have, or that another has told; None if there is none.

    `trunks`: the conversations that others branch from, by the branch. One of these may tell of the trunk's turns, as in runs of 0.3.
    """
    told = {id: each.added for id, each in found.items()}
    for id, each in found.items():
        more, trunk = each.added - each.turns, trunks.get(id, id)
        if more > 0:
            told[trunk] += more
            if trunk == id or told[trunk] > found[trunk].turns:
                return id
    return None


def ingestion_metrics(conversations: Iterable[Ingestion]) -> dict[str, float]:
    """Return what adding 1,000 tokens took, in all conversations together, how long settling and a search took on average, and how many
    memories a search returned beyond `k`, if any did.

    Empty if no agent tells.
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


def _number(value: Any) -> float:
    """Return a number of a trace, which may come from anybody; 0 for what is none."""
    return float(value) if is_finite(value) and value > 0 else 0.0
