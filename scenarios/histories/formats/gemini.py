"""Gemini's contents, its responses, and prompts of AI Studio."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from longspan.scenarios.histories.formats.messages import Context, LogFormat, Said, number_messages
from longspan.scenarios.histories.formats.times import find_time

__all__ = ["GEMINI"]


def _read(value: Mapping[str, Any], context: Context) -> Iterator[Said]:
    system = value.get("systemInstruction") or value.get("system_instruction")
    messages: list[Any] = [{"role": "system", "content": system}] if system else []
    messages += [value["contents"]] if isinstance(value.get("contents"), dict) else value.get("contents") or []
    candidates = value.get("candidates")
    messages += [each["content"] for each in candidates or () if isinstance(each, dict) and isinstance(each.get("content"), dict)][:1]
    return number_messages([_with_role(each) for each in messages], context, at=find_time(value))


def _with_role(message: Any) -> Any:
    """Return a message with a role: a content without one is the user's."""
    return {"role": "user", **message} if isinstance(message, dict) else message


def _read_studio(value: Mapping[str, Any], context: Context) -> Iterator[Said]:
    chunks = value["chunkedPrompt"].get("chunks") or []
    messages = [
        {"role": each.get("role"), "parts": [{"text": each.get("text"), "thought": each.get("isThought", False)}]}
        for each in chunks
        if isinstance(each, dict)
    ]
    return number_messages(messages, context)


GEMINI: Final = LogFormat(
    "gemini",
    "requests to Gemini and responses",
    '{"contents": [{"role": "user", "parts": [{"text": "My cat is Olive."}]}]}',
    lambda value: "messages" not in value and (isinstance(value.get("contents"), list | dict) or isinstance(value.get("candidates"), list)),
    _read,
    ordered=True,
)

STUDIO: Final = LogFormat(
    "ai-studio",
    "prompts saved by Google AI Studio",
    '{"chunkedPrompt": {"chunks": [{"role": "user", "text": "My cat is Olive."}]}}',
    lambda value: isinstance(value.get("chunkedPrompt"), dict),
    _read_studio,
    ordered=True,
)
