"""Formats shares of a whole for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

__all__ = ["format_interval", "format_percent", "format_points", "format_share_range"]

DIGITS: Final = 3
"""The most decimals for shares that are not quite 0% or 100%."""


def format_percent(share: float, *, sign: bool = False) -> str:
    """Format a share in [0, 1] as whole percent, with more decimals if it would otherwise round to 0% or 100%. `sign` is for
    differences."""
    value = 100 * share
    digits = next((more for more in range(DIGITS) if abs(round(value, more)) not in (0, 100)), DIGITS)
    if abs(round(value, DIGITS)) in (0, 100):
        digits, value = 0, round(value)
    text = f"{value:+.{digits}f}%" if sign and value else f"{value:.{digits}f}%"
    return text.replace("-0%", "0%").replace("-", "\N{MINUS SIGN}")


def format_share_range(low: float, high: float) -> str:
    """Format a share, or its two bounds if they differ."""
    one, other = format_percent(low), format_percent(high)
    return one if one == other else f"{one}–{other}"


def format_points(low: float, high: float) -> str:
    """Format a score in points, or its two bounds if they differ."""
    return f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f}–{high:.2f}"


def format_interval(ends: Sequence[Any] | None, *, whole: float = 1, sign: bool = False) -> str:
    """Format an interval as " [9%, 90%]", to follow a share. Its ends are shares, or points out of `whole`. Return "" without an
    interval."""
    return "" if ends is None else f" [{', '.join(format_percent(end / whole, sign=sign) for end in ends[:2])}]"
