"""Claude's export: conversations with chat_messages, which may have attachments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from longspan.scenarios.histories.formats.messages import Context, LogFormat, Said, first_text, number_messages, read_message
from longspan.scenarios.histories.formats.times import find_time
from longspan.scenarios.histories.formats.trees import shown_messages

__all__ = ["CLAUDE"]


def _read(value: Mapping[str, Any], context: Context) -> Iterator[Said]:
    messages = value["chat_messages"]
    if not isinstance(messages, list):
        raise ValueError("chat_messages must be a list of messages")
    shown, others = shown_messages(messages, "uuid", "parent_message_uuid", value.get("current_leaf_message_uuid"))
    yield from number_messages(list(shown), context, _read_one, at=find_time(value), thread=first_text(value, "uuid"))
    for _ in range(others):
        yield Said("", "messages of other branches", "skipped")


def _read_one(message: Mapping[str, Any], context: Context) -> Iterator[Said]:
    if not isinstance(message, dict):
        yield from read_message(message, context)
        return
    content = message.get("content") or message.get("text") or []
    parts: list[Any] = list(content) if isinstance(content, list) else [content]
    for key in ("attachments", "files", "files_v2"):
        files = message.get(key)
        for file in files if isinstance(files, list) else ():
            if isinstance(file, dict):
                parts.append({**file, "type": "file"})
    yield from read_message({**message, "content": parts}, context)


CLAUDE: Final = LogFormat(
    "claude",
    "Claude's export: the zip, its folder, or conversations.json",
    '{"uuid": "x", "chat_messages": [{"sender": "human", "text": "My cat is Olive."}]}',
    lambda value: "chat_messages" in value,
    _read,
    ordered=True,
)
