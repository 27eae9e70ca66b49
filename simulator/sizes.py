"""Sizes in tokens as people write them: `2k`, `1.5k`, `500000`."""

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
    """The number of tokens that `text` says: `k` is a thousand, `m` a million. Raises InputError for anything but a whole
    number of at least one."""
    match = _SIZE.fullmatch(text.strip())
    size = Decimal(match[1]) * _UNITS[match[2].casefold()] if match else Decimal(0)
    if size < 1 or size != int(size):
        raise InputError(f"a size is a whole number of tokens, at least 1, such as 8k, 1.5k or 500000; got {text!r:.60}")
    return int(size)


def _tokens(value: object) -> int:
    """Pydantic takes a ValueError for a field's error, and nothing else of ours."""
    try:
        return parse_size(value if isinstance(value, str) else repr(value))
    except InputError as error:
        raise ValueError(str(error)) from None


Tokens = Annotated[int, BeforeValidator(_tokens)]
"""A pydantic field's type for a size in tokens: takes what `parse_size` takes, and whole numbers."""
