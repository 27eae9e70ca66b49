"""A virtual night in words."""

from __future__ import annotations

from longspan.simulator.base.integers import is_finite
from longspan.simulator.journal.events import Night
from longspan.simulator.subject.ledger import total_cost

__all__ = ["night_line"]


def night_line(night: Night) -> str:
    """Describe a night: the agent's work, its duration, its cost, and the amount of memory before and after."""
    until = f"A night passes, until {night.to:%Y-%m-%d %H:%M}"
    if not night.consolidated:
        return f"{until}."
    measured = {name: value for name, value in (night.measured or {}).items() if is_finite(value)}
    told = [f"{measured['consolidate_s']:.2f} s"] if "consolidate_s" in measured else []
    if night.cost_usd:
        cost = total_cost(night.cost_usd.values())
        told.append("price unknown" if cost is None else f"${cost:.4f}")
    if "bytes_before" in measured and "bytes_after" in measured:
        told.append(f"{measured['bytes_before']:,.0f} bytes kept before and {measured['bytes_after']:,.0f} after")
    return f"{until}; the agent worked{': ' * bool(told)}{', '.join(told)}."
