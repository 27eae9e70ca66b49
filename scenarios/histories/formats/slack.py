"""Slack's exports: a folder for each channel, with a file for each day, next to users.json."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from longspan.scenarios.histories.formats.messages import Context, LogFormat, Said, first_text
from longspan.scenarios.histories.formats.times import parse_time

__all__ = ["SLACK"]

SAID: Final = ("", "bot_message", "file_share", "me_message", "thread_broadcast", "reply_broadcast", "assistant_app_thread")
"""Subtypes of messages that somebody wrote. The others are notices, such as channel_join."""

_LINK: Final = re.compile(r"<([@#!]?)([^|>\n]+)(?:\|([^>\n]*))?>")


def _read(value: Mapping[str, Any], context: Context) -> Iterator[Said]:
    if first_text(value, "subtype") not in SAID:
        yield Said("", "notices", "skipped")
        return
    text = first_text(value, "text") or "\n".join(_texts(value.get("attachments")))
    text = html.unescape(_LINK.sub(lambda link: _show_link(link, context), text))
    files = value.get("files")
    for file in files if isinstance(files, list) else ():
        if isinstance(file, dict):
            what = "picture" if first_text(file, "mimetype").startswith("image/") else f"file: {first_text(file, 'name', 'title')}"
            text = f"{text}\n[shares a {what}]".strip()
    folder = PurePosixPath(context.file).parent.name
    yield Said("", text, name=_name(value, context), at=parse_time(value["ts"]), thread=folder)


def _texts(attachments: Any) -> Iterator[str]:
    for each in attachments if isinstance(attachments, list) else ():
        if isinstance(each, dict):
            yield first_text(each, "text", "fallback")


def _show_link(link: re.Match[str], context: Context) -> str:
    kind, target, label = link.groups()
    if kind == "@":
        return f"@{label or _names(context).get(target, target)}"
    if kind or not label or label == target:
        return f"{kind.replace('!', '@')}{label or target}"
    return f"{label} ({target})"


def _name(value: Mapping[str, Any], context: Context) -> str:
    """Return a speaker's name: from users.json, or from the message, or else the user's id."""
    user, profile = first_text(value, "user"), value.get("user_profile")
    known = _names(context).get(user) or (first_text(profile, "display_name", "real_name", "name") if isinstance(profile, dict) else "")
    return known or first_text(value, "username") or user or first_text(value, "bot_id") or "unknown"


def _names(context: Context) -> Mapping[str, str]:
    """Return the names of users by id. They are read once for each folder."""
    if "slack" not in context.kept:
        users = context.find("users.json")
        names = context.kept["slack"] = {}
        for user in users if isinstance(users, list) else ():
            if isinstance(user, dict):
                profile = user.get("profile") if isinstance(user.get("profile"), dict) else {}
                names[first_text(user, "id")] = first_text(profile or {}, "display_name", "real_name") or first_text(
                    user, "real_name", "name"
                )
    return context.kept["slack"]


SLACK: Final = LogFormat(
    "slack",
    "Slack's exports: the zip, its folder, or the file of a day",
    '{"type": "message", "user": "U1", "text": "My cat is Olive.", "ts": "1709316300.000100"}',
    lambda value: value.get("type") == "message" and "ts" in value and "role" not in value,
    _read,
    alone=True,
)
