"""Pydantic fields for numbers and dates as users write them, and strict validation of whole numbers."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import date, datetime
from itertools import pairwise
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, ValidationError
from pydantic_core import PydanticCustomError

from longspan.simulator.base.integers import PLAIN, parse_integer
from longspan.simulator.base.lists import expand_list, seeds_in, spans_in
from longspan.simulator.base.sizes import MAX_TOKENS, Tokens, is_size

__all__ = [
    "MAX_START",
    "Label",
    "Names",
    "Seed",
    "Seeds",
    "Span",
    "Spans",
    "StartsAt",
    "Whole",
    "describe_fields",
    "is_option",
    "option_names",
    "validate_options",
]

Model = TypeVar("Model", bound=BaseModel)

Whole = Annotated[int, BeforeValidator(parse_integer)]
"""A whole number, as an int or as a string of plain digits."""

Seed = Annotated[Whole, Field(ge=-(2**63), lt=2**63)]
"""The seed of a run's tests."""

Span = Annotated[Whole, Field(ge=1, le=MAX_TOKENS)]
"""The span of a run's tests in tokens."""

Names = Annotated[list[str], BeforeValidator(lambda value: [value] if isinstance(value, str | int) else value)]
"""A list of names, or a single name."""

Spans = Annotated[list[Tokens], BeforeValidator(lambda values: expand_list(values, spans_in))]
"""A list of spans in tokens, or one string that lists several."""

Seeds = Annotated[list[Seed], BeforeValidator(lambda values: expand_list(values, seeds_in))]
"""A list of seeds, or one string that lists several."""

MAX_LABEL: Final = 40
"""The maximum number of characters in a label."""


def _label(value: object) -> str:
    """Return a valid label. Raises ValueError."""
    if (
        not isinstance(value, str)
        or not value.isprintable()
        or value != value.strip()
        or not 1 <= len(value) <= MAX_LABEL
        or set("[]") & set(value)
    ):
        raise ValueError(
            f"a label must be one line of 1 to {MAX_LABEL} characters without brackets, such as 'with reranker'; got {value!r:.60}"
        )
    return value


Label = Annotated[str, BeforeValidator(_label)]
"""A label that distinguishes runs of the same agent."""

MAX_START: Final = datetime(9000, 1, 1)
"""The first start date that is not allowed. Virtual time must not reach the end of Python's calendar."""

_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{3}|\.[0-9]{6})?)?)?")
_LOOKS_NUMERIC: Final = re.compile(r"[\s\d_+.-]*")


def _start(value: object) -> datetime:
    """Return a date and time without a time zone. Raises ValueError."""
    if isinstance(value, str) and _DATE.fullmatch(value):
        value = datetime.fromisoformat(value)
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime) or value.tzinfo is not None:
        raise ValueError("expected a date without a time zone, such as 2024-01-01T09:00")
    if value >= MAX_START:
        raise ValueError(f"expected a date before {MAX_START:%Y-%m-%d}")
    return value


StartsAt = Annotated[datetime, BeforeValidator(_start)]
"""The virtual date at the start of a conversation."""


OPEN: Final = ".NAME"
"""The suffix of the alias of an open field. An open field collects all options with its prefix in a mapping: `header.NAME` takes
`header.user` and so on."""


def option_names(model: type[BaseModel]) -> list[str]:
    """Return the names of a model's options as users write them."""
    return [info.alias or name for name, info in model.model_fields.items()]


def describe_fields(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings below a model's fields by option name, with "" for a field without one.

    Python discards such docstrings, so they are parsed from the source.
    """
    import ast
    import inspect
    import textwrap

    found: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        if not issubclass(cls, BaseModel) or cls is BaseModel:
            continue
        try:
            source = inspect.getsource(cls)
        except (OSError, TypeError):  # the package may be installed without its source
            continue
        (tree,) = ast.parse(textwrap.dedent(source)).body
        statements = tree.body if isinstance(tree, ast.ClassDef) else []
        for field, below in pairwise(statements):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
                text = ast.literal_eval(below.value) if isinstance(below.value, ast.Constant) else ""
                found[field.target.id] = " ".join(str(text).split())
    return {info.alias or name: found.get(name, "") for name, info in model.model_fields.items()}


def is_option(name: str, known: Collection[str]) -> bool:
    """Return whether `name` is one of the `known` names, or has the prefix of an open field among them."""
    prefix, dot, rest = name.partition(".")
    return f"{prefix}{OPEN}" in known if dot and rest else name in known


def _gather_open_fields(model: type[BaseModel], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given values, with the options of each open field gathered into one mapping."""
    found = dict(given)
    for prefix in (name.removesuffix(OPEN) for name in option_names(model) if name.endswith(OPEN)):
        inside = {name.removeprefix(f"{prefix}."): found.pop(name) for name in given if name.startswith(f"{prefix}.")}
        if inside:
            found[f"{prefix}{OPEN}"] = inside
    return found


def validate_options(model: type[Model], given: Mapping[str, Any]) -> Model:
    """Validate values that a user gave by name. Raises ValidationError.

    A whole number must be in plain digits (see `parse_integer`) or a size, even if pydantic would accept more.
    """
    # Pydantic's strict mode cannot express this. In Python and JSON mode, the string "7" is not a number, but agent options are strings. In
    # string mode, "1_000" is 1000, "0-9" is -9, and the number 7 from a suite is not a number.
    given = _gather_open_fields(model, given)
    read = model.model_validate(given)
    for name, info in model.model_fields.items():
        key = name if name in given else info.alias or name
        if key in given and (odd := _odd(given[key], getattr(read, name))):
            why = PydanticCustomError("whole_number", "{why}", {"why": odd})
            raise ValidationError.from_exception_data(model.__name__, [{"type": why, "loc": (key,), "input": given[key]}])
    return read


def _odd(given: Any, read: Any) -> str:
    """Return the problem with a value that was parsed as a whole number, or with the first such value in a list or mapping. Return "" if
    all are fine."""
    if type(read) is int and type(given) is not int:
        if isinstance(given, str) and (PLAIN.match(given) or is_size(given) or not _LOOKS_NUMERIC.fullmatch(given)):
            return ""  # a word with letters: the field itself has turned it into a number
        try:
            parse_integer(given)
        except ValueError as error:
            return str(error)
    pairs: list[tuple[Any, Any]] = []
    if isinstance(given, Mapping) and isinstance(read, Mapping):
        pairs = [(value, read[key]) for key, value in given.items() if key in read]
    elif isinstance(given, list | tuple) and isinstance(read, list | tuple):
        pairs = list(zip(given, read, strict=False))
    return next(filter(None, (_odd(*pair) for pair in pairs)), "")
