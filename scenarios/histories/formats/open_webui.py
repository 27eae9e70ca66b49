"""Open WebUI's exports: chats with a tree of messages."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from longspan.scenarios.histories.formats.messages import Context, LogFormat, Said, decode_json, first_text, number_messages, read_message
from longspan.scenarios.histories.formats.times import find_time
from longspan.scenarios.histories.formats.trees import shown_branch

__all__ = ["OPEN_WEBUI"]

_DETAILS: Final = re.compile(r'<details type="([\w-]+)"([^>]*)>.*?</details>\s*', re.DOTALL)
"""Reasoning and tool calls within a text."""
_FIELD: Final = re.compile(r'(\w+)="([^"]*)"')


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


def _split(content: str) -> Iterator[dict[str, Any]]:
    """Yield the parts of a text: what was said, and what its details are."""
    at = 0
    for found in _DETAILS.finditer(content):
        yield {"type": "text", "text": content[at : found.start()].strip()}
        at, fields = found.end(), dict(_FIELD.findall(found[2]))
        if found[1] == "tool_calls":
            name, given, result = (_decode(fields.get(key, "")) for key in ("name", "arguments", "result"))
            yield {"type": "tool_call", "tool_call": {"name": name, "args": given, "output": result}}
        else:
            yield {"type": found[1]}
    yield {"type": "text", "text": content[at:]}


def _decode(field: str) -> str:
    """Return a field's text, which is escaped and may be JSON of a text."""
    text = html.unescape(field)
    value = decode_json(text)
    return value if isinstance(value, str) else text


def _read_one(message: Mapping[str, Any], context: Context) -> Iterator[Said]:
    content = message.get("content")
    if isinstance(content, str):
        content = list(_split(content))
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
