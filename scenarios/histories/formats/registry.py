"""The formats of logs. Packages add others by entry point."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from longspan.scenarios.histories.formats import chat, chatgpt, claude, sharegpt
from longspan.scenarios.histories.formats.messages import LogFormat
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.installed import find_entry_points
from longspan.simulator.contract.plugins import load_plugin

__all__ = ["find_format", "list_formats"]

GROUP: Final = "longspan.log_formats"
"""The entry-point group for formats of logs. An entry point maps a name to a LogFormat."""

OWN: Final = (
    chatgpt.CHATGPT,
    claude.CLAUDE,
    sharegpt.SHAREGPT,
    chat.CONVERSATION,
    chat.MESSAGE,
)
"""longspan's formats. The first that recognises a value reads it, so special formats precede general ones."""


@lru_cache(maxsize=1)
def list_formats() -> tuple[LogFormat, ...]:
    """Return all formats by priority: installed ones, then longspan's own. Raises InputError if one cannot be loaded."""
    added = []
    for name in find_entry_points(GROUP):
        found = load_plugin(GROUP, "format of logs", name)
        if not isinstance(found, LogFormat):
            raise InputError(f"the format of logs {name!r} must be a LogFormat, not {type(found).__name__}")
        added.append(found)
    return (*added, *OWN)


def find_format(value: Any, *, text: bool = False) -> LogFormat | None:
    """Return the first format that recognises a JSON value or a text, or None."""
    return next((each for each in list_formats() if each.text == text and each.recognise(value)), None)
