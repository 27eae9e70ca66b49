"""SillyTavern's chats: JSON lines, with a header."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from longspan.scenarios.histories.formats.messages import Context, LogFormat, Said, first_text
from longspan.scenarios.histories.formats.times import find_time

__all__ = ["SILLYTAVERN"]


def _read(value: Mapping[str, Any], context: Context) -> Iterator[Said]:
    if "mes" not in value:
        return
    if value.get("is_system"):
        yield Said("", "hidden messages", "skipped")
        return
    role = "user" if value.get("is_user") else "assistant"
    yield Said(role, first_text(value, "mes"), name=first_text(value, "name"), at=find_time(value))


SILLYTAVERN: Final = LogFormat(
    "sillytavern",
    "SillyTavern's chats",
    '{"name": "Ada", "is_user": true, "send_date": "March 1, 2024 6:05pm", "mes": "My cat is Olive."}',
    lambda value: "mes" in value or {"user_name", "character_name"} <= value.keys(),
    _read,
    alone=True,
)
