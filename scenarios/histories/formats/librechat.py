"""LibreChat's exports: a list of messages with parents, or messages within each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from longspan.scenarios.histories.formats.messages import Context, LogFormat, Said, first_text, number_messages, read_message
from longspan.scenarios.histories.formats.trees import shown_messages

__all__ = ["LIBRECHAT"]


def _flatten(messages: Any) -> Iterator[Mapping[str, Any]]:
    """Yield messages, and those within them."""
    pending = list(reversed(messages if isinstance(messages, list) else []))
    while pending:
        message = pending.pop()
        if isinstance(message, dict):
            yield message
            children = message.get("children")
            pending += list(reversed(children)) if isinstance(children, list) else []


def _read(value: Mapping[str, Any], context: Context) -> Iterator[Said]:
    shown, others = shown_messages(list(_flatten(value["messages"])), "messageId", "parentMessageId", None)
    yield from number_messages(list(shown), context, _read_one, thread=first_text(value, "conversationId"))
    for _ in range(others):
        yield Said("", "messages of other branches", "skipped")


def _read_one(message: Mapping[str, Any], context: Context) -> Iterator[Said]:
    role = "user" if message.get("isCreatedByUser") else "assistant"
    bare = {key: field for key, field in message.items() if key not in ("sender", "conversationId")}
    yield from read_message({**bare, "role": role}, context)


LIBRECHAT: Final = LogFormat(
    "librechat",
    "LibreChat's exports",
    '{"conversationId": "c", "messages": [{"messageId": "m", "isCreatedByUser": true, "text": "My cat is Olive."}]}',
    lambda value: (
        isinstance(value, dict)
        and isinstance(value.get("messages"), list)
        and any(isinstance(each, dict) and "isCreatedByUser" in each for each in value["messages"])
    ),
    _read,
    ordered=True,
)
