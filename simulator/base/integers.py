"""Whole numbers as users write them: plain decimal digits.

Python, YAML and pydantic accept far more: 0x10, 1_000, +7, 7.0, true, 1:30, and even 0-9, which becomes -9.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Final, TypeGuard

__all__ = ["PLAIN", "integer_parser", "is_finite", "parse_integer"]

PLAIN: Final = re.compile(r"(?:0|-?[1-9][0-9]{0,18})\Z")
"""Matches a whole number of at most 19 plain digits."""


def parse_integer(value: object) -> int:
    """Return a whole number from an int or plain digits. Raises ValueError for anything else, such as true or 7.0."""
    if type(value) is int:
        return value
    if isinstance(value, str) and PLAIN.match(value):
        return int(value)
    got = repr(value[:40]) if isinstance(value, str) else str(value) if isinstance(value, bool | float) else type(value).__name__
    raise ValueError(f"expected one whole number in plain digits, such as 7; got {got}")


def is_finite(value: object) -> TypeGuard[int | float]:
    """Return whether a value is a number (not a boolean) that is finite as a float. JSON allows ints with thousands of digits."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < sys.float_info.max


def integer_parser(low: int, high: int) -> Callable[[object], int]:
    """Return a parser for a command-line option: `parse_integer` with limits."""

    def parse(value: object) -> int:
        number = parse_integer(value)
        if not low <= number <= high:
            raise ValueError(f"must be from {low:,} to {high:,}")
        return number

    return parse
