"""Token counts as users write them (`2k`, `1.5k`, `500000`), and a short format for output."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Final

from pydantic import BeforeValidator, Field

from longspan.simulator.base.errors import InputError

__all__ = ["MAX_TOKENS", "Tokens", "format_tokens", "is_size", "parse_size"]

MAX_TOKENS: Final = 1_000_000_000
"""The most tokens allowed in a span, a window and similar settings."""

_SIZE: Final = re.compile(r"(0|[1-9][0-9]{0,11})|((?:0|[1-9][0-9]{0,11})(?:\.[0-9]{1,6})?) ?([km])", re.IGNORECASE | re.ASCII)
_UNITS: Final = {"k": 1_000, "m": 1_000_000}


def is_size(text: str) -> bool:
    """Return whether `text` has the form of a size, even if its value is not allowed."""
    return _SIZE.fullmatch(text) is not None


def parse_size(text: str) -> int:
    """Parse a number of tokens. `k` means thousand, `m` means million.

    Raises InputError unless it is a whole number from 1 to MAX_TOKENS.
    """
    match = _SIZE.fullmatch(text)
    size = Decimal(0) if match is None else Decimal(match[1]) if match[1] else Decimal(match[2]) * _UNITS[match[3].casefold()]
    if not 1 <= size <= MAX_TOKENS or size != int(size):
        raise InputError(f"a size must be a whole number of tokens from 1 to {MAX_TOKENS:,}, such as 8k, 1.5k or 500000; got {text!r:.60}")
    return int(size)


def _tokens(value: object) -> int:
    """Parse a size for pydantic, which reports a ValueError as an error of the field, but lets an InputError through."""
    if type(value) is not int and not isinstance(value, str):
        raise ValueError(f"a size must be a whole number of tokens, such as 8k, 1.5k or 500000; got {type(value).__name__}")
    try:
        return parse_size(value if isinstance(value, str) else str(value) if abs(value) <= MAX_TOKENS else "too large")
    except InputError as error:
        raise ValueError(str(error)) from None


Tokens = Annotated[int, BeforeValidator(_tokens), Field(le=MAX_TOKENS)]
"""A pydantic field type for a number of tokens: an integer, or a string that `parse_size` accepts."""


def format_tokens(tokens: float) -> str:
    """Format a number of tokens in at most four characters, up to 999 million: 812, 1.2k, 31k, 451k, 1.4M."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if tokens >= 0.9995 * size:
            return f"{tokens / size:.{tokens < 9.95 * size:d}f}{letter}"
    return f"{tokens:.0f}"
