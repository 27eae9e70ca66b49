"""Exports of chats between people: Telegram's result.json, and DiscordChatExporter's JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from longspan.scenarios.histories.formats.messages import Context, LogFormat, Said, first_text, number_messages
from longspan.scenarios.histories.formats.times import find_time

__all__ = ["DISCORD", "TELEGRAM"]


def _chats(value: Any) -> list[Any]:
    """Return the chats of an export of Telegram. An export of a single chat has its messages at the top."""
    chats = value.get("chats") if isinstance(value, dict) else None
    listed = chats.get("list") if isinstance(chats, dict) else None
    return listed if isinstance(listed, list) else [value]


def _is_telegram(value: Any) -> bool:
    return any(
        isinstance(chat, dict) and isinstance(chat.get("messages"), list) and any(map(_is_message, chat["messages"]))
        for chat in _chats(value)
    )


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") in ("message", "service") and "date" in value and "role" not in value


def _read(value: Mapping[str, Any], context: Context) -> Iterator[Said]:
    chats = _chats(value)
    for chat in chats:
        if isinstance(chat, dict):
            thread = first_text(chat, "id", "name") if len(chats) > 1 else ""
            yield from number_messages(chat.get("messages") or [], context, _read_one, thread=thread)


def _read_one(message: Mapping[str, Any], context: Context) -> Iterator[Said]:
    if not isinstance(message, dict) or message.get("type") != "message":
        yield Said("", "notices", "skipped")
        return
    given = message.get("text") or ""
    parts = given if isinstance(given, list) else [given]
    text = "".join(part if isinstance(part, str) else first_text(part, "text") for part in parts if isinstance(part, str | dict))
    name = first_text(message, "sticker_emoji", "file_name")
    shared = (
        "picture" if "photo" in message else first_text(message, "media_type").replace("_", " ") or ("file" if "file" in message else "")
    )
    extra = f"[shares a {shared}{': ' if name else ''}{name}]" if shared else ""
    id = first_text(message, "id")
    if forwarded := first_text(message, "forwarded_from"):
        text = f"[forwards what {forwarded} said]\n{text}"
    yield Said("", f"{text}\n{extra}".strip(), name=first_text(message, "from", "from_id") or "unknown", at=find_time(message), id=id)


TELEGRAM: Final = LogFormat(
    "telegram",
    "Telegram's result.json",
    '{"messages": [{"id": 1, "type": "message", "date": "2024-03-01T18:05:00", "from": "Ada", "text": "My cat is Olive."}]}',
    _is_telegram,
    _read,
)


def _read_discord(value: Mapping[str, Any], context: Context) -> Iterator[Said]:
    return number_messages(value["messages"], context, _read_discord_message)


def _read_discord_message(message: Mapping[str, Any], context: Context) -> Iterator[Said]:
    author = message.get("author") if isinstance(message, dict) else None
    if not isinstance(author, dict) or message.get("type", "Default") not in ("Default", "Reply"):
        yield Said("", "notices", "skipped")
        return
    text, files = first_text(message, "content"), message.get("attachments")
    for file in files if isinstance(files, list) else ():
        text += f"\n[shares a file: {first_text(file, 'fileName', 'url')}]" if isinstance(file, dict) else ""
    name = first_text(author, "nickname", "name") or "unknown"
    yield Said("", text.strip(), name=name, at=find_time(message), id=first_text(message, "id"))


DISCORD: Final = LogFormat(
    "discord",
    "JSON of DiscordChatExporter",
    '{"channel": {"id": "1"}, "messages": [{"timestamp": "2024-03-01T18:05:00Z", "author": {"name": "Ada"}, "content": "Hi."}]}',
    lambda value: (
        isinstance(value.get("channel"), dict)
        and isinstance(value.get("messages"), list)
        and not any(isinstance(each, dict) and "role" in each for each in value["messages"])
    ),
    _read_discord,
)
