"""The formats of logs. Packages add others by entry point."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from longspan.scenarios.histories.formats import (
    chat,
    chatgpt,
    claude,
    claude_code,
    envelopes,
    gemini,
    langgraph,
    letta,
    librechat,
    open_webui,
    responses,
    sharegpt,
    sillytavern,
    slack,
    tables,
    telegram,
    whatsapp,
)
from longspan.scenarios.histories.formats.messages import Context, LogFormat, Said, number_messages
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.installed import find_entry_points
from longspan.simulator.contract.plugins import load_plugin

__all__ = ["find_format", "list_formats"]

GROUP: Final = "longspan.log_formats"
"""The entry-point group for formats of logs. An entry point maps a name to an object with `recognise` and `read`, such as a module."""

OWN: Final = (
    chatgpt.CHATGPT,
    claude.CLAUDE,
    open_webui.OPEN_WEBUI,
    librechat.LIBRECHAT,
    langgraph.LANGGRAPH,
    letta.LETTA,
    letta.LETTA_MESSAGE,
    telegram.DISCORD,
    telegram.TELEGRAM,
    slack.SLACK,
    sillytavern.SILLYTAVERN,
    envelopes.CODEX,
    claude_code.CLAUDE_CODE,
    envelopes.ROW,
    sharegpt.SHAREGPT,
    gemini.GEMINI,
    gemini.STUDIO,
    responses.ITEM,
    responses.PAGE,
    chat.CONVERSATION,
    chat.MESSAGE,
    responses.RESPONSE,
    whatsapp.WHATSAPP,
    tables.CSV,
)
"""longspan's formats. The first that recognises a value reads it, so special formats precede general ones."""


@lru_cache(maxsize=1)
def list_formats() -> tuple[LogFormat, ...]:
    """Return all formats by priority: installed ones, then longspan's own. Raises InputError if one cannot be loaded."""
    added = []
    for name in find_entry_points(GROUP):
        found = load_plugin(GROUP, "format of logs", name)
        if not callable(getattr(found, "recognise", None)) or not callable(getattr(found, "read", None)):
            raise InputError(f"the format of logs {name!r} lacks a function recognise(value) or read(value)")
        added.append(_wrap(name, found))
    return (*added, *OWN)


def _wrap(name: str, found: Any) -> LogFormat:
    """Return the format of another package, which yields messages as chat APIs have them."""
    what = (found.__doc__ or "").strip().partition("\n")[0]

    def read(value: Any, context: Context) -> Iterator[Said]:
        return number_messages(list(found.read(value)), context)

    def recognise(value: Any) -> bool:
        try:
            return bool(found.recognise(value))
        except (TypeError, LookupError, AttributeError):  # it has not tested what kind of value it got
            return False

    is_text = bool(getattr(found, "text", False))
    return LogFormat(name, what, str(getattr(found, "example", "")), recognise, read, text=is_text)


def find_format(value: Any, *, text: bool = False) -> LogFormat | None:
    """Return the first format that recognises a JSON value or a text, or None."""
    if not text and not isinstance(value, dict):
        return None
    return next((each for each in list_formats() if each.text == text and each.recognise(value)), None)
