"""Shares of a whole as people read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

__all__ = ["between", "percent", "points", "spanned"]

DIGITS: Final = 3
"""The most digits after the point, for shares that are not quite 0% or 100%."""


def percent(share: float, *, sign: bool = False) -> str:
    """Format a share, 0 to 1, in whole percent, or with the digits that tell it from 0% or 100%. A difference has a `sign`; 0 has none."""
    value = 100 * share
    digits = next((more for more in range(DIGITS) if abs(round(value, more)) not in (0, 100)), DIGITS)
    if abs(round(value, DIGITS)) in (0, 100):
        digits, value = 0, round(value)
    text = f"{value:+.{digits}f}%" if sign and value else f"{value:.{digits}f}%"
    return text.replace("-0%", "0%").replace("-", "\N{MINUS SIGN}")


def spanned(low: float, high: float) -> str:
    """Format a share, or the two bounds that it lies between."""
    one, other = percent(low), percent(high)
    return one if one == other else f"{one}–{other}"


def points(low: float, high: float) -> str:
    """Format a score in points, or the two bounds that it lies between."""
    return f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f}–{high:.2f}"


def between(ends: Sequence[Any] | None, *, whole: float = 1, sign: bool = False) -> str:
    """Format the two ends of an interval, of a share or of so many points in a `whole`: " [9%, 90%]", to follow the share. Empty without
    an interval."""
    return "" if ends is None else f" [{', '.join(percent(end / whole, sign=sign) for end in ends[:2])}]"
