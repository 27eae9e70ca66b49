"""Open WebUI's exports: chats with a tree of messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from longspan.scenarios.histories.formats.messages import Context, LogFormat, Said, first_text, number_messages, read_message
from longspan.scenarios.histories.formats.times import find_time
from longspan.scenarios.histories.formats.trees import shown_branch

__all__ = ["OPEN_WEBUI"]

_DETAILS: Final = re.compile(r'<details type="([\w-]+)".*?</details>\s*', re.DOTALL)
"""Reasoning and tool calls within a text."""


def _history(value: Any) -> Mapping[str, Any] | None:
    """Return the tree of a chat, or None if the value is not a chat."""
    chat = value.get("chat") if isinstance(value, dict) else None
    for each in (chat, value):
        history = each.get("history") if isinstance(each, dict) else None
        if isinstance(history, dict) and isinstance(history.get("messages"), dict):
            return history
    return None


def _read(value: Mapping[str, Any], context: Context) -> Iterator[Said]:
    history = _history(value) or {}
    branch, others = shown_branch(history["messages"], history.get("currentId"), "history", "parentId")
    yield from number_messages(branch, context, _read_one, at=find_time(value), thread=first_text(value, "id"))
    for _ in range(others):
        yield Said("", "messages of other branches", "skipped")


def _read_one(message: Mapping[str, Any], context: Context) -> Iterator[Said]:
    content = message.get("content")
    if isinstance(content, str):
        for found in _DETAILS.finditer(content):
            yield Said("", found[1].replace("_", " "), "skipped")
        content = [{"type": "text", "text": _DETAILS.sub("", content)}]
    files = message.get("files")
    parts = content if isinstance(content, list) else []
    for file in files if isinstance(files, list) else ():
        if isinstance(file, dict):
            inner = file.get("file") if isinstance(file.get("file"), dict) else {}
            data = inner.get("data") if isinstance(inner, dict) and isinstance(inner.get("data"), dict) else {}
            source = {"type": "text", "data": first_text(data, "content")} if isinstance(data, dict) else {}
            parts = [
                *parts,
                {"name": first_text(file, "name"), "type": "image" if file.get("type") == "image" else "file", "source": source},
            ]
    yield from read_message({**message, "content": parts}, context)


OPEN_WEBUI: Final = LogFormat(
    "open-webui",
    "Open WebUI's exports",
    '{"chat": {"history": {"currentId": "a", "messages": {"a": {"role": "user", "content": "My cat is Olive."}}}}}',
    lambda value: _history(value) is not None,
    _read,
    ordered=True,
)
