"""Agents' work in virtual nights: the number of nights, the cost of work, and the size of the memory before and after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any, Self, final

from longspan.simulator.base.integers import is_finite
from longspan.simulator.journal.events import Night
from longspan.simulator.results.measures.measure import GradedTests, Measure
from longspan.simulator.subject.ledger import sum_known_costs

__all__ = ["Nights", "night_metrics"]


@final
class Nights(Measure):
    """The agent's work in virtual nights."""

    name = "nights"

    @classmethod
    def of_run(cls, run: GradedTests, read: Mapping[str, Self]) -> Mapping[str, Any]:
        return night_metrics(night for transcript in run.own for night in transcript.nights)


def night_metrics(nights: Iterable[Night]) -> dict[str, float]:
    """Return the number of nights, the number when the agent worked, and means over the latter; empty without nights.

    The means are of seconds, tokens of its models, dollars, and the bytes stored before and after. Figures that no night reports are left
    out.
    """
    passed = list(nights)
    worked = [night for night in passed if night.consolidated]
    if not passed:
        return {}
    found = {"nights": float(len(passed)), "nights_worked": float(len(worked))}
    told = {
        "night_seconds": [_measured_value(night, "consolidate_s") for night in worked],
        "night_tokens": [_tokens(night) for night in worked],
        "night_usd": [sum_known_costs(night.cost_usd.values()) if night.cost_usd else None for night in worked],
        "night_bytes_before": [_measured_value(night, "bytes_before") for night in worked],
        "night_bytes_after": [_measured_value(night, "bytes_after") for night in worked],
    }
    known = {name: [value for value in values if value is not None] for name, values in told.items()}
    return found | {name: round(fmean(values), 6) for name, values in known.items() if values}


def _tokens(night: Night) -> float | None:
    """Return the tokens that models read and wrote in a night; None if unreported."""
    usages = [*([night.usage] if night.usage else []), *(night.besides or {}).values()]
    return float(sum(usage.get("input_tokens", 0) + usage.get("output_tokens", 0) for usage in usages)) if usages else None


def _measured_value(night: Night, name: str) -> float | None:
    value = (night.measured or {}).get(name)
    return float(value) if is_finite(value) else None
