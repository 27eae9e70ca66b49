"""Token counts as users write them: `2k`, `1.5k`, `500000`."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated

from pydantic import BeforeValidator

from longspan.simulator.errors import InputError

__all__ = ["Tokens", "parse_size"]

_SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([km]?)", re.IGNORECASE)
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


def parse_size(text: str) -> int:
    """Parse a number of tokens: `k` is a thousand, `m` a million. Raises InputError unless it is a whole number of at least 1."""
    match = _SIZE.fullmatch(text.strip())
    size = Decimal(match[1]) * _UNITS[match[2].casefold()] if match else Decimal(0)
    if size < 1 or size != int(size):
        raise InputError(f"a size must be a whole number of tokens, at least 1, such as 8k, 1.5k or 500000; got {text!r:.60}")
    return int(size)


def _tokens(value: object) -> int:
    """Parse a size for pydantic, which reports a ValueError, but not an InputError, as a field's error."""
    try:
        return parse_size(value if isinstance(value, str) else repr(value))
    except InputError as error:
        raise ValueError(str(error)) from None


Tokens = Annotated[int, BeforeValidator(_tokens)]
"""A pydantic field type for a number of tokens: an integer, or text that `parse_size` accepts."""
