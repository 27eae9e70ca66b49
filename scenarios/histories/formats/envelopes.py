"""Entries that have a message within another object: sessions of Codex, and rows of stores of messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from longspan.scenarios.histories.formats.messages import THREADS, Context, LogFormat, Said, first_text, read_message, role_of
from longspan.scenarios.histories.formats.responses import read_item
from longspan.scenarios.histories.formats.times import find_time

__all__ = ["CODEX", "ROW"]

MARKS: Final = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions",
    "# AGENTS.md instructions",
    "<INSTRUCTIONS>",
    "<turn_aborted>",
)
"""Beginnings of texts that the program has written in the user's name."""


def _read_codex(value: Mapping[str, Any], context: Context) -> Iterator[Said]:
    if value.get("type") != "response_item":  # events repeat what items say
        yield Said("", f"entries of type {first_text(value, 'type', 'record_type') or 'session_meta':.40}", "skipped")
        return
    for said in read_item(value["payload"], context):
        is_hidden = said.role != "assistant" and said.text.lstrip().startswith(MARKS)
        yield Said("", "hidden messages", "skipped") if is_hidden else said._replace(at=find_time(value))


CODEX: Final = LogFormat(
    "codex",
    "Codex's sessions",
    '{"timestamp": "2024-03-01T18:05:00Z", "type": "response_item", '
    '"payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "My cat is Olive."}]}}',
    lambda value: (
        (isinstance(value.get("type"), str) and isinstance(value.get("payload"), dict))
        or "record_type" in value
        or {"timestamp", "instructions"} <= value.keys()
    ),
    _read_codex,
    alone=True,
)


def _read_row(value: Mapping[str, Any], context: Context) -> Iterator[Said]:
    for said in read_message(value["message"], context):
        yield said._replace(at=said.at or find_time(value), thread=said.thread or first_text(value, *THREADS))


ROW: Final = LogFormat(
    "row",
    "rows of stores of messages, such as LangChain's, with the message in a field",
    '{"session_id": "s", "message": {"type": "human", "data": {"content": "My cat is Olive."}}}',
    lambda value: isinstance(value.get("message"), dict) and role_of(value["message"]) is not None,
    _read_row,
    alone=True,
)
