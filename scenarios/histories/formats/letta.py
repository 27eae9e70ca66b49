"""Letta: agent files (.af), and messages as its API lists them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from longspan.scenarios.histories.formats.messages import (
    Context,
    LogFormat,
    Said,
    decode_json,
    first_text,
    number_messages,
    read_message,
    write_call,
    write_result,
)
from longspan.scenarios.histories.formats.times import find_time

__all__ = ["LETTA", "LETTA_MESSAGE"]

SPOKEN: Final = "send_message"
"""The tool through which older agents speak. The text beside it is what they thought."""


def _read(value: Mapping[str, Any], context: Context) -> Iterator[Said]:
    for agent in value["agents"]:
        if isinstance(agent, dict):
            thread = first_text(agent, "id", "name") if len(value["agents"]) > 1 else ""
            yield from number_messages(agent.get("messages") or [], context, _read_one, thread=thread)


def _read_one(message: Any, context: Context) -> Iterator[Said]:
    found = list(read_message(message, context))
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    spoken = [text for call in calls or () if (text := _spoken(call)) is not None] if isinstance(calls, list) else []
    id = next((said.id for said in found if said.id), "")
    for said in found:
        if said.kind == "call" and spoken and said.text.startswith(f"[calls {SPOKEN}("):
            yield said._replace(kind="said", text=spoken.pop(0), id=id)
        elif said.kind == "said" and said.role == "assistant" and spoken:
            yield Said("", "reasoning", "skipped")
        elif said.role == "user" and said.text.startswith('{"type"'):
            yield _unwrap(said)
        else:
            yield said


def _spoken(call: Any) -> str | None:
    """Return what a call of the tool that speaks says, or None for another call."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or function.get("name") != SPOKEN:
        return None
    given = _parse(function.get("arguments"))
    return first_text(given, "message") or None


def _parse(text: Any) -> Mapping[str, Any]:
    found = decode_json(text) if isinstance(text, str) else text
    return found if isinstance(found, dict) else {}


def _unwrap(said: Said) -> Said:
    """Return the user's words from the envelope in which agents get them. Other events are skipped."""
    event = _parse(said.text)
    if not event:
        return said
    return said._replace(text=first_text(event, "message")) if event.get("type") == "user_message" else Said("", "events", "skipped")


LETTA: Final = LogFormat(
    "letta",
    "Letta's agent files (.af)",
    '{"agents": [{"messages": [{"role": "user", "content": [{"type": "text", "text": "My cat is Olive."}]}]}]}',
    lambda value: isinstance(value.get("agents"), list) and any(isinstance(each, dict) and "messages" in each for each in value["agents"]),
    _read,
)


def _read_listed(value: Mapping[str, Any], context: Context) -> Iterator[Said]:
    kind, at = str(value["message_type"]).removesuffix("_message"), find_time(value)
    if kind in ("user", "assistant", "system"):
        content = value.get("content") or value.get(f"{kind}_message") or value.get("message")
        for said in _read_one({"role": kind, "content": content, "id": value.get("id")}, context):
            yield said._replace(at=at)
    elif kind in ("tool_call", "approval_request"):
        call = value.get("tool_call")
        call = call if isinstance(call, dict) else {}
        spoken = _spoken({"function": call})
        written = write_call(first_text(call, "name"), call.get("arguments", {}), context)
        yield written._replace(at=at) if spoken is None else Said("assistant", spoken, at=at)
    elif kind == "tool_return":
        yield write_result(first_text(value, "name"), value.get("tool_return", ""), context)._replace(at=at)
    else:
        yield Said("", "reasoning" if "reasoning" in kind else f"messages of type {kind:.40}", "skipped")


LETTA_MESSAGE: Final = LogFormat(
    "letta-message",
    "messages as Letta's API lists them",
    '{"message_type": "user_message", "content": "My cat is Olive."}',
    lambda value: isinstance(value.get("message_type"), str),
    _read_listed,
    alone=True,
)
