"""Errors that name the parameters of Python's functions instead of the command line's options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, get_args

from longspan.simulator.base.errors import InputError, StoppedError
from longspan.simulator.suite.grid import Grid

__all__ = ["name_parameters"]

NAMES: Final = (
    {field.replace("_", "-"): field for field in Grid.model_fields}
    | {name: name for name in ("span", "agent", "out", "replies")}
    | {"trust": "trust=True", "seed": "seeds", "scenario": "scenarios", "max-cost": "max_cost", "max-tokens-total": "max_tokens"}
)
"""The parameters by the options that do the same."""

_VALUES: Final = "|".join(value for field in Grid.model_fields.values() for value in get_args(field.annotation) if isinstance(value, str))
_OPTION: Final = re.compile(
    rf"`[^`]*`|\blongspan (?:run|resume|sweep)\b[^;]*|--experiment (?=\w)|--([a-z-]+)( (?=(?:{_VALUES})\b)|(?= ?[,;.]|\Z))?"
)
"""An option, or a command, whose options stay."""


@contextmanager
def name_parameters() -> Iterator[None]:
    """Rename the options in errors: "--branch off asks" becomes "branch=off asks", and "--nights is" becomes "nights is"."""
    try:
        yield
    except (InputError, StoppedError) as error:
        if "exec:" not in str(error):  # a command has options of its own
            error.args = (_OPTION.sub(_rename, str(error)), *error.args[1:])
        raise


def _rename(match: re.Match[str]) -> str:
    name = NAMES.get(match[1])
    if name is None:
        return "" if match[0] == "--experiment " else match[0]
    return name + "=" * (match[2] is not None and "=" not in name)
