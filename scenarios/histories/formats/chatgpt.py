"""ChatGPT's export: a tree of messages for each conversation, in conversations.json or conversations-000.json and so on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from longspan.scenarios.histories.formats.messages import Context, LogFormat, Said, number_messages, read_message, role_of
from longspan.scenarios.histories.formats.times import find_time
from longspan.scenarios.histories.formats.trees import shown_branch

__all__ = ["CHATGPT"]

INTERNAL: Final = {
    **dict.fromkeys(("thoughts", "reasoning_recap"), "reasoning"),
    **dict.fromkeys(("user_editable_context", "model_editable_context"), "hidden messages"),
}
"""Kinds of content that were never shown as a message."""


def _read(value: Mapping[str, Any], context: Context) -> Iterator[Said]:
    nodes = value["mapping"]
    branch, others = shown_branch(nodes, value.get("current_node"), "mapping")
    messages = [node["message"] for node in branch if isinstance(node.get("message"), dict)]
    yield from number_messages(messages, context, _read_node, at=find_time(value), thread=str(value.get("conversation_id") or ""))
    for _ in range(others):
        yield Said("", "messages of other branches", "skipped")


def _read_node(message: Mapping[str, Any], context: Context) -> Iterator[Said]:
    content = message.get("content")
    metadata = message.get("metadata")
    kind = content.get("content_type") if isinstance(content, dict) else None
    if kind in INTERNAL:
        yield Said("", INTERNAL[str(kind)], "skipped")
        return
    is_hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation")
    if is_hidden and role_of(message) != "tool":  # what tools have found in files is hidden, but was said
        yield Said("", "hidden messages", "skipped")
        return
    files = metadata.get("attachments") if isinstance(metadata, dict) else None
    extra = [{**file, "type": "file"} for file in files or () if isinstance(file, dict)] if isinstance(files, list) else []
    recipient = message.get("recipient")
    if kind in ("code", "execution_output", "tether_quote", "tether_browsing_display") or recipient not in (None, "all"):
        extra, content = [], _as_tool(content, str(recipient or "all"), kind)
    elif isinstance(content, dict) and isinstance(content.get("parts"), list):
        content = [*content["parts"], *extra]
    yield from read_message({**message, "content": content}, context)


def _as_tool(content: Any, recipient: str, kind: Any) -> Any:
    """Return code for a tool as a call. What a tool answers stays a text, because its role says so."""
    text = content if not isinstance(content, dict) else content.get("text") or content.get("result") or content.get("parts")
    if recipient == "all":
        return text
    given = text if isinstance(text, str) else "\n".join(part for part in text or () if isinstance(part, str))
    return [{"type": "tool_use", "name": recipient, "input": given}]


CHATGPT: Final = LogFormat(
    "chatgpt",
    "ChatGPT's export: the zip, its folder, or conversations.json",
    '{"current_node": "b", "mapping": {"b": {"parent": null, "message": {"author": {"role": "user"}, '
    '"content": {"content_type": "text", "parts": ["My cat is Olive."]}}}}}',
    lambda value: isinstance(value.get("mapping"), dict),
    _read,
    ordered=True,
)
