"""Sessions of Claude Code: JSON lines with a message in each entry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from longspan.scenarios.histories.formats.messages import Context, LogFormat, Said, read_message, role_of
from longspan.scenarios.histories.formats.times import find_time

__all__ = ["CLAUDE_CODE"]

NOT_SAID: Final = {"isSidechain": "sidechain messages", "isMeta": "hidden messages", "isCompactSummary": "summaries"}
MARKS: Final = ("<command-", "<local-command-", "<system-reminder>", "<bash-stdout>", "<user-memory-input>")
"""Beginnings of texts that the program has written in the user's name."""


def _read(value: Mapping[str, Any], context: Context) -> Iterator[Said]:
    message = value.get("message")
    if isinstance(message, str):  # Gemini CLI's
        message = {"role": value["type"], "content": message}
    message = message if isinstance(message, dict) else {}
    hidden = next((what for key, what in NOT_SAID.items() if value.get(key) is True), None)
    if role_of(message) is None:
        hidden = "summaries" if value["type"] == "summary" else f"entries of type {value['type']:.40}"
    if hidden is not None:
        yield Said("", hidden, "skipped")
        return
    bare = {key: field for key, field in message.items() if key != "id"}  # several entries have the parts of one message
    extra = {"id": value.get("uuid"), "sessionId": value.get("sessionId")}
    for said in read_message({**bare, **{key: field for key, field in extra.items() if isinstance(field, str)}}, context):
        is_hidden = said.role == "user" and said.text.lstrip().startswith(MARKS)
        yield Said("", "hidden messages", "skipped") if is_hidden else said._replace(at=find_time(value))


CLAUDE_CODE: Final = LogFormat(
    "claude-code",
    "sessions of Claude Code, without sidechains, and of Gemini CLI",
    '{"type": "user", "uuid": "u1", "sessionId": "s", "message": {"role": "user", "content": "My cat is Olive."}}',
    lambda value: (
        isinstance(value.get("type"), str)
        and not value.keys().isdisjoint(("sessionId", "leafUuid", "parentUuid", "isSnapshotUpdate"))
        and role_of(value) is None
    ),
    _read,
    alone=True,
)
