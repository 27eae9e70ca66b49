"""Lists of seeds or spans in one string, as users write them: `0-9`, `1,4,7`, `2k,32k`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from longspan.simulator.base.errors import InputError
from longspan.simulator.base.integers import parse_integer
from longspan.simulator.base.sizes import parse_size

__all__ = ["expand_list", "seeds_in", "spans_in"]

T = TypeVar("T")

MAX_SEEDS: Final = 10_000
"""The most seeds in a range."""

_WHOLE: Final = r"0|-?[1-9][0-9]{0,18}"
_RANGE: Final = re.compile(rf"({_WHOLE})-({_WHOLE})", re.ASCII)
_COMMA: Final = re.compile(", ?")


def seeds_in(text: str) -> list[int]:
    """Return the seeds listed in `text`: whole numbers and ranges such as 0-9, separated by commas.

    Raises InputError for anything else, and for a range that runs backwards or has more than MAX_SEEDS seeds.
    """
    return [seed for part in _COMMA.split(text) for seed in _range(part)]


def spans_in(text: str) -> list[int]:
    """Return the spans listed in `text`, in tokens: sizes such as 32k, separated by commas. Raises InputError."""
    return [parse_size(part) for part in _COMMA.split(text)]


def expand_list(values: object, read: Callable[[str], list[T]]) -> Any:
    """Return a value, or a list of values, as a list, with each string replaced by the values that it lists.

    Other values are left for pydantic to validate. Raises ValueError, which pydantic reports as an error of the field.
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        values = [values]
    try:
        return [each for value in values for each in (read(value) if isinstance(value, str) else [value])]
    except InputError as error:
        raise ValueError(str(error)) from None


def _range(text: str) -> list[int]:
    if (match := _RANGE.fullmatch(text)) is None:
        try:
            return [parse_integer(text)]
        except ValueError as error:
            raise InputError(f"{error}; several are a range such as 0-9 or a list such as 1,4,7") from None
    first, last = int(match[1]), int(match[2])
    if not 0 <= last - first < MAX_SEEDS:
        raise InputError(f"a range of seeds must run upwards and have at most {MAX_SEEDS:,} of them, such as 0-9; got {text!r:.60}")
    return list(range(first, last + 1))
