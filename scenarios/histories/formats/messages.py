"""The neutral form of a message that all formats yield, and the readers of contents that formats share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple, final

from longspan.scenarios.histories.formats.times import find_time

__all__ = [
    "Context",
    "LogFormat",
    "MessageError",
    "Said",
    "number_messages",
    "read_message",
    "read_parts",
    "role_of",
    "write_call",
    "write_result",
]

MAX_TOOL: Final = 2_000
"""Maximum length of a tool call or result in characters. The rest is cut, and the text says how much."""

Kind = Literal["said", "call", "result", "skipped"]

ROLES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("user", "human", "customer"), "user"),
    **dict.fromkeys(("assistant", "ai", "model", "bot", "gpt", "chatgpt", "aimessagechunk"), "assistant"),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("tool", "function", "observation", "ipython", "toolmessage"), "tool"),
    **dict.fromkeys(("function_call", "tool_call"), "call"),
    **dict.fromkeys(("critic", "discriminator"), "skipped"),
}
THREADS: Final = ("session", "session_id", "sessionId", "thread_id", "threadId", "conversation_id", "conversationId", "chat_id")
IDS: Final = ("id", "uuid", "message_id", "messageId")
CLASSES: Final = {"HumanMessage": "human", "AIMessage": "ai", "AIMessageChunk": "ai", "SystemMessage": "system", "ToolMessage": "tool"}
"""LangChain's message classes."""


@final
class MessageError(ValueError):
    """A message of a value is wrong. The error's text begins with the message's place within the value."""


@final
class Said(NamedTuple):
    """A turn of a conversation, a tool call or result in it, or something skipped.

    `role`: user, assistant or system; empty between people, whose speakers are known by `name` alone. `text`: the words; for something
    skipped, what it is. `place`: where it is within its value in the file.
    """

    role: str
    text: str
    kind: Kind = "said"
    name: str = ""
    at: datetime | None = None
    thread: str = ""
    id: str = ""
    place: str = ""


@final
@dataclass
class Context:
    """What a format may need besides a value: names of tools by call id, other files by name, and notes for the user.

    `file`: the file's name relative to the user's path. `find`: returns the JSON value of a companion file, such as users.json, or None.
    """

    file: str = ""
    find: Callable[[str], Any] = lambda name: None
    calls: dict[str, str] = field(default_factory=dict)
    notes: set[str] = field(default_factory=set)


@final
@dataclass(frozen=True)
class LogFormat:
    """A format of logs.

    - what: what writes it, in a few words
    - example: its smallest form
    - recognise: whether a JSON value has this format; for a text format, whether a text begins in it
    - read: yields the messages of a value or text, in the order in which they were said if the value tells. Raises ValueError
    - alone: whether a value is a single message, so that consecutive values form a conversation
    - ordered: whether the order of messages is certain, so that they are not sorted by time
    - text: whether it is not JSON
    """

    name: str
    what: str
    example: str
    recognise: Callable[[Any], bool]
    read: Callable[[Any, Context], Iterable[Said]]
    alone: bool = False
    ordered: bool = False
    text: bool = False


def number_messages(
    messages: Any, context: Context, read: Callable[[Mapping[str, Any], Context], Iterable[Said]] | None = None, **given: Any
) -> Iterator[Said]:
    """Yield what a list of messages says, each with its place. `given`: fields for messages without them. Raises ValueError."""
    if not isinstance(messages, list):
        raise ValueError("must be a list of messages")
    for number, message in enumerate(messages, 1):
        place = f"message {number}"
        try:
            for said in (read or read_message)(message, context):
                missing = {key: value for key, value in given.items() if not getattr(said, key)}
                yield said._replace(place=place, **missing)
        except ValueError as error:
            raise MessageError(f"{place}: {error}") from None


def role_of(value: Mapping[str, Any]) -> str | None:
    """Return a message's role as it stands in the file, in lower case, or None if the value is not a message."""
    author, kind = value.get("author"), value.get("type")
    role = author.get("role") if isinstance(author, Mapping) else None
    if kind == "constructor" and isinstance(value.get("id"), list) and value["id"]:
        role = CLASSES.get(str(value["id"][-1]), str(value["id"][-1]))
    given = [role, value.get("role"), value.get("sender"), value.get("from")]
    if isinstance(value.get("data"), Mapping) or "content" in value:
        given.append(kind)
    return next((each.casefold() for each in given if isinstance(each, str)), None)


def read_message(value: Any, context: Context) -> Iterator[Said]:
    """Yield what a message says, in the forms of chat APIs and libraries. Raises ValueError."""
    role = role_of(value) if isinstance(value, Mapping) else None
    if role is None:
        raise ValueError('must be a message such as {"role": "user", "content": "..."}')
    speaker = ROLES.get(role)
    if speaker is None:
        raise ValueError(f"role {role!r:.80}: must be user, assistant or system, or tool")
    inner = value
    for key in ("data", "kwargs"):  # LangChain's
        inner = value[key] if isinstance(value.get(key), Mapping) else inner
    at = find_time(value) or find_time(inner)
    thread = next((str(value[key]) for key in THREADS if isinstance(value.get(key), str | int) and not isinstance(value[key], bool)), "")
    id = next((str(each[key]) for each in (value, inner) for key in IDS if isinstance(each.get(key), str)), "")
    name = inner.get("name")
    author = value.get("author")
    name = name or (author.get("name") if isinstance(author, Mapping) else None)
    name = name if isinstance(name, str) else ""
    contents = [inner[key] for key in ("content", "parts", "text", "value") if inner.get(key) not in (None, "", [])]
    parts = list(read_parts(contents[0] if contents else None, context))
    if speaker == "tool":
        called = str(inner.get("tool_call_id") or inner.get("tool_use_id") or "")
        text = "\n".join(part.text for part in parts if part.kind != "skipped")
        parts = [part for part in parts if part.kind == "skipped"] + [write_result(name or context.calls.get(called, ""), text, context)]
        name = ""
    elif speaker == "call":
        parts = [write_call(*_called(part.text), context) for part in parts]
    elif speaker == "skipped":
        parts = [Said("", f"messages of a {role}", "skipped")]
    parts += _calls(inner, context)
    if not parts:
        parts = [Said("", "messages without a text", "skipped")]
    role = speaker if speaker in ("user", "assistant", "system") else "assistant"
    parts = _join(parts)
    first = next((number for number, part in enumerate(parts) if part.kind == "said"), 0)
    for number, part in enumerate(parts):
        own = part.role or role
        yield part._replace(role=own, name=name if own == role else "", at=at, thread=thread, id=id if number == first else "")


def _join(parts: Iterable[Said]) -> list[Said]:
    """Return a message's parts with consecutive texts joined, and without empty ones."""
    joined: list[Said] = []
    for part in parts:
        if part.kind == "said" and joined and joined[-1].kind == "said":
            joined[-1] = joined[-1]._replace(text=f"{joined[-1].text}\n{part.text}")
        else:
            joined.append(part)
    return joined


def _calls(message: Mapping[str, Any], context: Context) -> Iterator[Said]:
    """Yield the tool calls that a message has next to its content."""
    extra = message.get("additional_kwargs")
    calls = message.get("tool_calls") or (extra.get("tool_calls") if isinstance(extra, Mapping) else None)
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, Mapping):
            yield _call(call, context)
    if isinstance(message.get("function_call"), Mapping):
        yield _call(message["function_call"], context)


def _call(call: Mapping[str, Any], context: Context) -> Said:
    """Return a tool call in any of the common forms."""
    inner = next((call[key] for key in ("function", "functionCall", "toolInvocation") if isinstance(call.get(key), Mapping)), call)
    name = next((str(inner[key]) for key in ("name", "toolName", "tool_name", "function") if isinstance(inner.get(key), str)), "")
    given = next((inner[key] for key in ("arguments", "args", "input", "parameters") if inner.get(key) is not None), {})
    for key in ("id", "call_id", "tool_call_id", "toolCallId"):
        if isinstance(call.get(key), str):
            context.calls[call[key]] = name
    return write_call(name, given, context)


def _called(text: str) -> tuple[str, Any]:
    """Return the name and the arguments of a call that is written as JSON in a text."""
    try:
        call = json.loads(text)
    except (ValueError, RecursionError):
        return "", text
    return (str(call.get("name", "")), call.get("arguments", call.get("parameters", {}))) if isinstance(call, Mapping) else ("", text)


def write_call(name: str, arguments: Any, context: Context) -> Said:
    """Return a tool call as a text, such as `[calls save({"x":1})]`."""
    context.calls[""] = name
    return Said("assistant", f"[calls {name or 'a tool'}({_limit(_compact(arguments))})]", "call")


def write_result(name: str, result: Any, context: Context) -> Said:
    """Return a tool's result as a text, such as `[result of save: ok]`. Without a name, it belongs to the last call."""
    name = name or context.calls.get("", "")
    return Said("assistant", f"[result{' of ' if name else ''}{name}: {_limit(_compact(result))}]", "result")


def _compact(value: Any) -> str:
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.lstrip()[:1] in ("{", "[") else value
        except (ValueError, RecursionError):
            return str(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _limit(text: str) -> str:
    return text if len(text) <= MAX_TOOL else f"{text[:MAX_TOOL]}... and {len(text) - MAX_TOOL:,} more characters"


def read_parts(content: Any, context: Context) -> Iterator[Said]:
    """Yield the parts of a message's content: a text, a list of parts, or a single one. Raises ValueError."""
    if content is None or content == "":
        return
    if isinstance(content, Mapping) and isinstance(content.get("parts"), list):  # ChatGPT's
        content = content["parts"]
    if isinstance(content, str | Mapping):
        content = [content]
    if not isinstance(content, list):
        raise ValueError(f"content must be a string or a list of parts, got {type(content).__name__}")
    for part in content:
        if isinstance(part, str):
            if part.strip():
                yield Said("", part)
        elif isinstance(part, Mapping):
            yield from _part(part, context)
        else:
            raise ValueError(f'a part of content must be a string or like {{"type": "text", "text": "..."}}, got {type(part).__name__}')


_KINDS: Final[dict[str, str]] = {
    **dict.fromkeys(("image", "image_url", "input_image", "image_file", "image_asset_pointer", "media_image"), "picture"),
    **dict.fromkeys(
        ("thinking", "redacted_thinking", "reasoning", "thoughts", "reasoning_recap", "reasoning_content", "think"), "reasoning"
    ),
    **dict.fromkeys(
        ("tool_use", "server_tool_use", "mcp_tool_use", "tool_call", "tool-call", "function_call", "custom_tool_call", "functionCall"),
        "call",
    ),
    **dict.fromkeys(
        ("tool_result", "mcp_tool_result", "web_search_tool_result", "tool-result", "function_call_output", "functionResponse"), "result"
    ),
    **dict.fromkeys(("file", "input_file", "document", "fileData", "file_data"), "file"),
}


def _part(part: Mapping[str, Any], context: Context) -> Iterator[Said]:
    """Yield what one part says."""
    kind = part.get("type") or part.get("content_type")
    kind = kind if isinstance(kind, str) else next((key for key in ("functionCall", "functionResponse") if key in part), "")
    meaning = _KINDS.get(kind, "")
    if part.get("thought") is True:  # Gemini's
        meaning = "reasoning"
    if kind == "dynamic-tool" or kind == "tool-invocation" or (kind.startswith("tool-") and not meaning):
        yield from _sdk_tool(kind, part, context)
    elif meaning == "call":
        yield _call(part, context)
    elif meaning == "result":
        yield _result(part, context)
    elif meaning == "reasoning":
        yield Said("", "reasoning", "skipped")
    elif meaning == "picture" or "image/" in str(_inline(part)):
        yield Said("", "[shares a picture]")
    elif meaning == "file" or _inline(part):
        yield Said("", _file(part, context))
    else:
        yield from _words(kind, part)


def _words(kind: str, part: Mapping[str, Any]) -> Iterator[Said]:
    """Yield the text of a part, or that it was skipped."""
    given = [part[key] for key in ("text", "refusal", "transcript") if part.get(key) is not None]
    audio = next((part[key] for key in ("audio", "input_audio") if isinstance(part.get(key), Mapping)), {})
    given += [audio[key] for key in ("transcript",) if audio.get(key)]
    text = given[0] if given else None
    text = text.get("value") if isinstance(text, Mapping) else text
    if text is not None and not isinstance(text, str):
        raise ValueError(f"the text of a part must be a string, got {type(text).__name__}")
    if text and text.strip():
        yield Said("", text)
    elif text is None:
        yield Said("", f"parts of type {kind:.40}" if kind else "parts without a text", "skipped")


def _inline(part: Mapping[str, Any]) -> str:
    """Return the media type of data within a part, or nothing."""
    inner = next((part[key] for key in ("inlineData", "inline_data", "fileData", "file_data") if isinstance(part.get(key), Mapping)), None)
    kinds = [each.get(key) for each in (inner or {}, part) for key in ("mimeType", "mime_type", "mediaType", "media_type")]
    return next((kind for kind in kinds if isinstance(kind, str)), "file" if inner else "")


def _file(part: Mapping[str, Any], context: Context) -> str:
    """Return a file as a text: its name, and its content if that is a text."""
    inner = part.get("file") if isinstance(part.get("file"), Mapping) else part
    name = next((str(inner[key]) for key in ("title", "filename", "file_name", "name") if isinstance(inner.get(key), str)), "")
    source = part.get("source")
    text = ""
    if isinstance(source, Mapping) and source.get("type") in ("text", "content"):
        text = "\n".join(each.text for each in read_parts(source.get("data") or source.get("content"), context) if each.kind == "said")
    return f"[shares a file{': ' if name else ''}{name}]" + (f"\n{text}" if text else "")


def _result(part: Mapping[str, Any], context: Context) -> Said:
    inner = part["functionResponse"] if isinstance(part.get("functionResponse"), Mapping) else part
    called = next((str(inner[key]) for key in ("tool_use_id", "call_id", "tool_call_id", "toolCallId") if inner.get(key)), "")
    name = inner.get("name") or inner.get("toolName") or context.calls.get(called, "")
    given = next((inner[key] for key in ("output", "content", "result", "response") if inner.get(key) is not None), "")
    return write_result(name if isinstance(name, str) else "", _result_text(given, context), context)


def _result_text(given: Any, context: Context) -> Any:
    """Return the text of a result that is a list of parts, or else the result."""
    if isinstance(given, list) and given and all(isinstance(each, Mapping) and ("text" in each or "type" in each) for each in given):
        return "\n".join(part.text for part in read_parts(given, context) if part.kind != "skipped")
    return given


def _sdk_tool(kind: str, part: Mapping[str, Any], context: Context) -> Iterator[Said]:
    """Yield the call and the result of a tool part of Vercel's AI SDK."""
    inner = part["toolInvocation"] if isinstance(part.get("toolInvocation"), Mapping) else part
    name = str(inner.get("toolName") or kind.removeprefix("tool-"))
    yield write_call(name, inner.get("input", inner.get("args", {})), context)
    given = next((inner[key] for key in ("output", "result", "errorText") if inner.get(key) is not None), None)
    if given is not None:
        yield write_result(name, given, context)
