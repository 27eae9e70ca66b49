"""Read messages in the formats of chat programs and libraries: OpenAI, Anthropic, LangChain, and exports of ChatGPT and Claude."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, final

__all__ = ["ExportedMessage", "is_message", "messages_of", "read_message", "split_sessions", "time_of"]

GAP: Final = timedelta(hours=1)
"""A longer pause between two messages starts a new session."""

SPEAKERS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("user", "human", "customer"), "user"),
    **dict.fromkeys(("assistant", "ai", "model", "bot", "gpt", "aimessagechunk"), "assistant"),
    **dict.fromkeys(("system", "developer"), "system"),
}
LEFT_OUT: Final = frozenset({"tool", "function", "ipython", "critic", "discriminator"})
"""Roles of messages that are not turns: tool calls and their results."""

TIMES: Final = ("timestamp", "created_at", "createdAt", "create_time", "created", "time", "date", "sent_at", "at", "ts")
THREADS: Final = ("session", "session_id", "thread_id", "conversation_id", "chat_id")
"""Keys that give a message's time (TIMES) and its session (THREADS)."""
CLASSES: Final = {"HumanMessage": "human", "AIMessage": "ai", "AIMessageChunk": "ai", "SystemMessage": "system", "ToolMessage": "tool"}
"""LangChain's message classes."""

PICTURES: Final = frozenset({"image", "image_url", "input_image", "image_file", "image_asset_pointer"})
TEXTS: Final = frozenset({"text", "input_text", "output_text", "refusal"})
MILLISECONDS: Final = 1e11
"""Numbers from here on are milliseconds. As seconds, they would be in the year 5138 or later."""


@final
class ExportedMessage(NamedTuple):
    """A message: its speaker, its time and thread if known, and its place in the file.

    Messages of tools have no speaker, and tool calls no text.
    """

    speaker: str
    text: str
    at: datetime | None
    thread: str | None
    id: str | None
    place: str


def is_message(value: Any) -> bool:
    """Return whether a JSON value is a message in one of the accepted formats."""
    return isinstance(value, Mapping) and _role(value) is not None


def messages_of(value: Mapping[str, Any]) -> list[Any] | None:
    """Return the messages of a conversation, in order; None if the value is not a conversation. Raises ValueError."""
    for key in ("messages", "chat_messages", "conversations"):
        if key in value:
            if not isinstance(value[key], list):
                raise ValueError(f"{key} must be a list of messages")
            system = value.get("system")  # Anthropic's requests keep it outside the messages
            return [*([{"role": "system", "content": system}] if system else []), *value[key]]
    return _branch(value) if isinstance(value.get("mapping"), Mapping) else None


def _branch(value: Mapping[str, Any]) -> list[Any]:
    """Return the messages of a conversation exported by ChatGPT. They form a tree, and only the branch of the current message was
    visible."""
    nodes = value["mapping"]
    leaves = [key for key, node in nodes.items() if isinstance(node, Mapping) and not node.get("children")]
    at = value.get("current_node") or next(reversed(leaves), None)
    found: list[Any] = []
    seen: set[str] = set()
    while isinstance(at, str) and at in nodes:
        node = nodes[at]
        if at in seen or not isinstance(node, Mapping):
            raise ValueError(
                f"mapping: the messages before {at!r:.80} form a cycle" if at in seen else f"mapping: {at!r:.80} is not a message"
            )
        seen.add(at)
        if node.get("message") is not None:
            found.append(node["message"])
        at = node.get("parent")
    return found[::-1]


def read_message(value: Any, place: str) -> ExportedMessage:
    """Return the message at a place in a file. Raises ValueError, naming the fault and the accepted formats."""
    role = _role(value) if isinstance(value, Mapping) else None
    if role is None:
        raise ValueError('must be a message such as {"role": "user", "content": "..."}')
    inner = value
    for key in ("data", "kwargs"):  # LangChain's
        inner = value[key] if isinstance(value.get(key), Mapping) else inner
    speaker = "" if role in LEFT_OUT else SPEAKERS.get(role)
    if speaker is None:
        raise ValueError(f"role {role!r:.80}: must be user, assistant or system, or tool, which is left out")
    text = _text(inner.get("content")) or _text(inner.get("text")) or _text(inner.get("value")) if speaker else ""
    named = next((str(value[key]) for key in THREADS if isinstance(value.get(key), str | int) and not isinstance(value[key], bool)), None)
    id = next((value[key] for key in ("id", "uuid", "message_id") if isinstance(value.get(key), str) and value[key]), None)
    return ExportedMessage(speaker, text, time_of(value), named, id, place)


def _role(value: Mapping[str, Any]) -> str | None:
    author = value.get("author")
    role = author.get("role") if isinstance(author, Mapping) else None
    kind = value.get("type")
    if kind == "constructor" and isinstance(value.get("id"), list) and value["id"]:
        role = CLASSES.get(str(value["id"][-1]), str(value["id"][-1]))
    given = [role, value.get("role"), value.get("sender"), value.get("from")]
    if isinstance(value.get("data"), Mapping) or "content" in value:
        given.append(kind)
    return next((each.casefold() for each in given if isinstance(each, str)), None)


def _text(content: Any) -> str:
    """Return a content's text, joining its parts. Pictures become a placeholder; tool calls and reasoning are dropped."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, Mapping):
        if isinstance(content.get("parts"), list):  # ChatGPT's
            return _text(content["parts"])
        content = [content]
    if not isinstance(content, list):
        raise ValueError(f"content must be a string or a list of parts, got {type(content).__name__}")
    return "\n".join(filter(None, map(_part, content)))


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        raise ValueError(f'a part of content must be a string or like {{"type": "text", "text": "..."}}, got {type(part).__name__}')
    kind = part.get("type") or part.get("content_type")
    if kind in PICTURES:
        return "[shares a picture]"
    text = part.get("text") if kind in TEXTS or kind is None else None
    text = text.get("value") if isinstance(text, Mapping) else text or part.get("refusal")
    if text is not None and not isinstance(text, str):
        raise ValueError(f"the text of a part must be a string, got {type(text).__name__}")
    return text or ""


def time_of(value: Mapping[str, Any]) -> datetime | None:
    """Return the time of a message or conversation, from the first key that gives one, or None.

    Numbers are seconds or milliseconds since 1970, in UTC. Time zones in strings are dropped. Raises ValueError for other values.
    """
    key = next((key for key in TIMES if value.get(key) is not None), None)
    if key is None:
        return None
    try:
        return _time(value[key])
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{key} must be a time such as 2024-01-31T09:00 or seconds since 1970, got {value[key]!r:.40}") from None


def _time(given: Any) -> datetime:
    if isinstance(given, str) and not given.strip().replace(".", "", 1).isdecimal():
        return datetime.fromisoformat(given.strip()).replace(tzinfo=None)
    if isinstance(given, bool) or not isinstance(given, str | int | float) or len(str(given)) > 40 or not math.isfinite(float(given)):
        raise ValueError
    seconds = float(given)
    return datetime.fromtimestamp(seconds / 1000 if abs(seconds) >= MILLISECONDS else seconds, UTC).replace(tzinfo=None, microsecond=0)


def split_sessions(messages: Sequence[ExportedMessage]) -> Iterator[list[ExportedMessage]]:
    """Yield sessions of consecutive messages. A new one starts with a new thread or after a pause of more than GAP."""
    session: list[ExportedMessage] = []
    last: datetime | None = None
    for message in messages:
        paused = last is not None and message.at is not None and message.at - last > GAP
        if session and (paused or message.thread != session[-1].thread):
            yield session
            session = []
        session.append(message)
        last = message.at or last
    if session:
        yield session
