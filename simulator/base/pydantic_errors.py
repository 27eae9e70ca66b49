"""Pydantic's validation errors, rephrased."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, get_args

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

__all__ = ["place_of", "problem_of"]

_WORDS: Final[Mapping[str, str]] = {
    "missing": "is missing",
    "extra_forbidden": "unknown key",
    "invalid_key": "its keys must be text",
    "json_invalid": "not JSON: {error}",
    "recursion_loop": "contains itself",
    "recursion_depth_exceeded": "is nested too deeply",
    "frozen_field": "cannot be changed",
    "frozen_instance": "cannot be changed",
    "none_required": "must be left out",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "finite_number": "must be a finite number",
    "too_short": "must have at least {min_length} items",
    "too_long": "must have at most {max_length} items",
    "string_unicode": "must be valid Unicode",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match the pattern {pattern}",
    "string_not_ascii": "must be ASCII",
    "bytes_too_short": "must have at least {min_length} bytes",
    "bytes_too_long": "must have at most {max_length} bytes",
    "enum": "must be {expected}",
    "literal_error": "must be {expected}",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "has too many digits",
    "date_past": "must be in the past",
    "date_future": "must be in the future",
    "datetime_past": "must be in the past",
    "datetime_future": "must be in the future",
    "timezone_naive": "must have no time zone",
    "timezone_aware": "must have a time zone",
    "union_tag_invalid": "must have a {discriminator} that is one of {expected_tags}",
    "union_tag_not_found": "lacks {discriminator}",
    "url_too_long": "must have at most {max_length} characters",
}
"""The message for each type of problem, with placeholders for values from its context."""

_KINDS: Final[Mapping[str, str]] = {
    "int": "a whole number",
    "float": "a number",
    "decimal": "a number",
    "bool": "true or false",
    "string": "text",
    "bytes": "bytes",
    "list": "a list",
    "tuple": "a list",
    "set": "a list",
    "deque": "a list",
    "iterable": "a list",
    "frozen_set": "a list",
    "dict": "an object with keys",
    "frozen_dict": "an object with keys",
    "ordered_dict": "an object with keys",
    "mapping": "an object with keys",
    "model": "an object with keys",
    "model_attributes": "an object with keys",
    "dataclass": "an object with keys",
    "date": "a date, such as 2024-01-31",
    "date_from_datetime": "a date, such as 2024-01-31",
    "time": "a time, such as 09:00",
    "datetime": "a date and time, such as 2024-01-31T09:00",
    "datetime_from_date": "a date and time, such as 2024-01-31T09:00",
    "time_delta": "a length of time",
    "url": "an address, such as http://127.0.0.1:8000",
    "json": "JSON",
}
"""The expected kind of value for problems of type KIND_type or KIND_parsing."""

_OWN: Final = ("value_error", "assertion_error")
"""Problems that a validator found and described, ours or a scenario author's."""


def problem_of(error: ErrorDetails) -> str:
    """Describe a problem in one line."""
    from pydantic_core import core_schema

    type_, context = error["type"], error.get("ctx", {})
    if type_ in _OWN:
        return " ".join(str(context.get("error", "")).split()) or "is not valid"
    if context.get("min_length") == 1:
        return "must not be empty"
    if type_ in _WORDS:
        return " ".join(_WORDS[type_].format_map({name: _format_limit(value) for name, value in context.items()}).split())
    for ending in ("_type", "_parsing"):
        if type_.endswith(ending) and (kind := type_.removesuffix(ending)) in _KINDS:
            return f"must be {_KINDS[kind]}"
    return "is not valid" if type_ in get_args(core_schema.ErrorType) else " ".join(error["msg"].split())


def place_of(error: ErrorDetails) -> str:
    """Return the path to the wrong value, such as `runs.0.seeds`, or "" if the whole value is wrong."""
    return " ".join(".".join(_keys(error["loc"])).split())[:200]


def _keys(location: Iterable[int | str]) -> Iterable[str]:
    """Yield the parts of a location, without the type names that pydantic adds, such as `constrained-str` or `list[int]`."""
    return (key for key in map(str, location) if not key.endswith("]") and not key.startswith("constrained-"))


def _format_limit(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).removesuffix("T00:00:00")
