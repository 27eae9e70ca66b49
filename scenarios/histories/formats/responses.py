"""OpenAI's Responses API: items, responses, requests, and pages of items; and other pairs of input and output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from longspan.scenarios.histories.formats.messages import (
    Context,
    LogFormat,
    Said,
    first_text,
    number_messages,
    read_message,
    read_parts,
    role_of,
    write_call,
    write_result,
)
from longspan.scenarios.histories.formats.times import find_time

__all__ = ["ITEM", "PAGE", "RESPONSE"]

BOTH: Final = (
    "mcp_call",
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "computer_call",
    "local_shell_call",
    "shell_call",
)
"""Items that have a call and, once it is done, its result."""
CALLS: Final = ("function_call", "custom_tool_call", *BOTH)
RESULTS: Final = tuple(f"{kind.removesuffix('_call')}_call_output" for kind in CALLS)


def _is_item(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and "role" not in value
        and value.get("type") in ("reasoning", "item_reference", "compaction", *CALLS, *RESULTS)
    )


def read_item(value: Any, context: Context) -> Iterator[Said]:
    """Yield what an item says. Raises ValueError."""
    if not _is_item(value):
        yield from read_message(value, context)
        return
    kind, at = str(value["type"]), find_time(value)
    if kind in RESULTS:
        called = context.calls.get(first_text(value, "call_id"), "")
        output = value.get("output", "")
        if isinstance(output, list):
            output = "\n".join(part.text for part in read_parts(output, context) if part.kind != "skipped")
        said = [write_result(called, output, context)]
    elif kind in CALLS:
        name = first_text(value, "name") or kind.removesuffix("_call")
        context.calls[first_text(value, "call_id", "id")] = name
        given: Any = next((value[key] for key in ("arguments", "input", "action", "queries", "code") if value.get(key) is not None), {})
        output = next((value[key] for key in ("output", "results", "outputs") if value.get(key)), None)
        said = [write_call(name, given, context), *([write_result(name, output, context)] if output is not None else [])]
    else:
        said = [Said("", "reasoning" if kind == "reasoning" else f"items of type {kind}", "skipped")]
    for each in said:
        yield each._replace(at=at)


def _read_response(value: Mapping[str, Any], context: Context) -> Iterator[Said]:
    items: list[Any] = []
    for key, role in (
        ("instructions", "system"),
        ("input", "user"),
        ("prompt", "user"),
        ("output", "assistant"),
        ("completion", "assistant"),
        ("preferred_output", "assistant"),
    ):
        given = value.get(key)
        if isinstance(given, str) and given.strip():
            items.append({"role": role, "content": given})
        elif isinstance(given, list):
            items += given
        elif isinstance(given, dict) and isinstance(given.get("messages"), list):
            items += given["messages"]
    yield from number_messages(items, context, read_item, at=find_time(value))
    if "non_preferred_output" in value:
        yield Said("", "answers that were not preferred", "skipped")


def _read_page(value: Mapping[str, Any], context: Context) -> Iterator[Said]:
    """Yield the items of a page. Pages are often newest first, which shows if no item has a time: the assistant's words stand first."""
    items = value["data"]
    spoken = [role for each in items if isinstance(each, dict) and (role := role_of(each)) in ("user", "assistant")]
    if len(spoken) > 1 and (spoken[0], spoken[-1]) == ("assistant", "user") and not any(map(_is_dated, items)):
        context.notes.add("put in the order of time")
        items = items[::-1]
    return number_messages(items, context, read_item)


def _is_dated(value: Any) -> bool:
    return isinstance(value, dict) and find_time(value) is not None


ITEM: Final = LogFormat(
    "responses-item",
    "items of OpenAI's Responses API, each on its own line or in a list",
    '{"type": "function_call", "call_id": "c", "name": "save", "arguments": "{}"}',
    _is_item,
    read_item,
    alone=True,
)

RESPONSE: Final = LogFormat(
    "responses",
    "requests to OpenAI's Responses API and responses, and other pairs of input and output or prompt and completion",
    '{"input": "My cat is Olive.", "output": [{"type": "message", "role": "assistant", "content": []}]}',
    lambda value: (
        isinstance(value, dict)
        and role_of(value) is None
        and any(isinstance(value.get(key), str | list) for key in ("input", "output", "prompt", "completion", "preferred_output"))
    ),
    _read_response,
)

PAGE: Final = LogFormat(
    "openai-list",
    "pages of messages or items that OpenAI's Assistants, Responses and Conversations APIs list",
    '{"object": "list", "data": [{"object": "thread.message", "role": "user", "content": "My cat is Olive."}]}',
    lambda value: (
        isinstance(value, dict)
        and isinstance(value.get("data"), list)
        and any(_is_item(each) or (isinstance(each, dict) and role_of(each) is not None) for each in value["data"])
    ),
    _read_page,
)
