"""The neutral form of a message that all formats yield, and the readers of contents that formats share."""

from __future__ import annotations

import json
import re
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
    "decode_json",
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
    **dict.fromkeys(("assistant", "ai", "model", "bot", "chatbot", "agent", "gpt", "chatgpt", "gemini", "approval"), "assistant"),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("tool", "function", "observation", "ipython", "tool_response", "function_response", "tool_result"), "tool"),
    **dict.fromkeys(("function_call", "tool_call", "tool_calls"), "call"),
    **dict.fromkeys(("critic", "discriminator"), "skipped"),
}
THREADS: Final = ("session", "session_id", "sessionId", "thread_id", "threadId", "conversation_id", "conversationId", "chat_id")
IDS: Final = ("id", "uuid", "message_id", "messageId")
CALL_IDS: Final = ("id", "call_id", "tool_call_id", "toolCallId")
_CLASS: Final = re.compile(r"(?<=[a-z])message(?:chunk)?$")
"""The end of the names of LangChain's classes, such as AIMessageChunk."""


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
    `dispatch`: reads a message in the format that recognises it. `kept`: what a format has found out about the file.
    """

    file: str = ""
    find: Callable[[str], Any] = lambda name: None
    dispatch: Callable[[Any, Context], Iterable[Said]] | None = None
    calls: dict[str, str] = field(default_factory=dict)
    notes: set[str] = field(default_factory=set)
    kept: dict[str, dict[str, str]] = field(default_factory=dict)


@final
@dataclass(frozen=True)
class LogFormat:
    """A format of logs.

    - what: what writes it, in a few words
    - example: its smallest form
    - recognise: whether a JSON object has this format; for a text format, whether a text begins in it
    - read: yields the messages of an object or text, in the order in which they were said if the value tells. Raises ValueError
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
    role = author.get("role") if isinstance(author, dict) else None
    if kind == "constructor" and isinstance(value.get("id"), list) and value["id"]:
        role = str(value["id"][-1])
    given = [role, value.get("role"), value.get("sender"), value.get("from")]
    if isinstance(value.get("data"), dict) or "content" in value:
        given.append(kind)
    found = next((each.casefold() for each in given if isinstance(each, str)), None)
    if found in ("chat", "chatmessage"):  # LangChain's, whose role is a field
        inner = _inner(value).get("role")
        return inner.casefold() if isinstance(inner, str) else found
    return None if found is None else _CLASS.sub("", found)


def _inner(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a message, which LangChain keeps within `data` or `kwargs`."""
    return next((value[key] for key in ("data", "kwargs") if isinstance(value.get(key), dict)), value)


def first_text(value: Mapping[str, Any], *keys: str) -> str:
    """Return the first of the values under these keys that is a text or a whole number, as text, or an empty text."""
    found = (value.get(key) for key in keys)
    return next((str(each) for each in found if isinstance(each, str | int) and not isinstance(each, bool) and each != ""), "")


def read_message(value: Any, context: Context) -> Iterator[Said]:
    """Yield what a message says, in the forms of chat APIs and libraries. Raises ValueError."""
    role = role_of(value) if isinstance(value, dict) else None
    if role is None:
        raise ValueError('must be a message such as {"role": "user", "content": "..."}')
    meaning = ROLES.get(role)
    if meaning is None:
        raise ValueError(f"role {role!r:.80}: must be user, assistant or system, or tool")
    inner = _inner(value)
    author = value.get("author")
    name = first_text(inner, "name") or (first_text(author, "name") if isinstance(author, dict) else "")
    parts = _join(_read_contents(meaning, role, name, inner, context))
    speaker = meaning if meaning in ("user", "assistant", "system") else "assistant"
    at = find_time(value) or find_time(inner)
    id = next((each[key] for each in (value, inner) for key in IDS if isinstance(each.get(key), str)), "")
    first = next((number for number, part in enumerate(parts) if part.kind == "said"), 0)
    for number, part in enumerate(parts):
        own = name if meaning == speaker and part.kind == "said" else ""
        said = part._replace(role=part.role or speaker, name=own, at=at, thread=first_text(value, *THREADS))
        yield said._replace(id=id) if number == first else said


def _read_contents(meaning: str, role: str, name: str, inner: Mapping[str, Any], context: Context) -> list[Said]:
    """Return the parts of a message, whose role means a speaker, a tool, a call, or nothing that was said."""
    if meaning == "skipped":
        return [Said("", f"messages of a {role}", "skipped")]
    is_ui = isinstance(inner.get("parts"), list) and any(isinstance(part, dict) for part in inner["parts"])  # AI SDK's
    keys = ("parts", "content", "text", "value") if is_ui else ("content", "parts", "text", "value")
    contents = next((inner[key] for key in keys if inner.get(key) not in (None, "", [])), None)
    if contents is None:  # Chat Completions keep these next to the content
        contents = first_text(inner, "refusal") or first_text(_mapping(inner, "audio"), "transcript")
    parts = list(read_parts(contents, context))
    if meaning == "tool" and not any(part.kind == "result" for part in parts):
        text = "\n".join(part.text for part in parts if part.kind == "said")
        called = context.calls.get(first_text(inner, "tool_call_id", "tool_use_id"), "")
        parts = [*(part for part in parts if part.kind == "skipped"), write_result(name or called, text, context)]
    elif meaning == "call":
        parts = [write_call(*_called(part.text), context) for part in parts]
    listed = contents if isinstance(contents, list) else []
    known = {each[key] for each in listed if isinstance(each, dict) for key in CALL_IDS if isinstance(each.get(key), str)}
    if not is_ui:
        parts += _calls(inner, known, context)
    return parts or [Said("", "messages without a text", "skipped")]


def _join(parts: Iterable[Said]) -> list[Said]:
    """Return a message's parts with consecutive texts joined, and without empty ones."""
    joined: list[Said] = []
    for part in parts:
        if part.kind == "said" and joined and joined[-1].kind == "said":
            joined[-1] = joined[-1]._replace(text=f"{joined[-1].text}\n{part.text}")
        else:
            joined.append(part)
    return joined


def _calls(message: Mapping[str, Any], known: set[Any], context: Context) -> Iterator[Said]:
    """Yield the tool calls that a message has next to its content. `known`: ids of those within its content."""
    extra = message.get("additional_kwargs")
    calls = message.get("tool_calls") or (extra.get("tool_calls") if isinstance(extra, dict) else None) or message.get("toolInvocations")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict) and not (known & {each for key in CALL_IDS if isinstance(each := call.get(key), str)}):
            yield _call(call, context)
            if call.get("result") is not None:
                yield write_result(first_text(call, "toolName"), call["result"], context)
    if isinstance(message.get("function_call"), dict):
        yield _call(message["function_call"], context)


def _call(call: Mapping[str, Any], context: Context) -> Said:
    """Return a tool call in any of the common forms."""
    inner = next((call[key] for key in ("function", "functionCall", "tool_call") if isinstance(call.get(key), dict)), call)
    name = first_text(inner, "name", "toolName", "tool_name", "function")
    given: Any = next((inner[key] for key in ("arguments", "args", "input", "parameters") if inner.get(key) is not None), {})
    for key in CALL_IDS:
        if isinstance(call.get(key), str):
            context.calls[call[key]] = name
    return write_call(name, given, context)


def decode_json(text: str) -> Any:
    """Return the value of JSON in a text, or the text if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _called(text: str) -> tuple[str, Any]:
    """Return the name and the arguments of a call that is written as JSON in a text."""
    call = decode_json(text)
    return (str(call.get("name", "")), call.get("arguments", call.get("parameters", {}))) if isinstance(call, dict) else ("", text)


def write_call(name: str, arguments: Any, context: Context) -> Said:
    """Return a tool call as a text, such as `[calls save({"x":1})]`."""
    context.calls[""] = name
    return Said("assistant", f"[calls {name or 'a tool'}({_limit(_compact(arguments))})]", "call")


def write_result(name: str, result: Any, context: Context) -> Said:
    """Return a tool's result as a text, such as `[result of save: ok]`. Without a name, it belongs to the last call."""
    name = name or context.calls.get("", "")
    return Said("assistant", f"[result{' of ' if name else ''}{name}: {_limit(_compact(result))}]", "result")


def _compact(value: Any) -> str:
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        value = decode_json(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _limit(text: str) -> str:
    return text if len(text) <= MAX_TOOL else f"{text[:MAX_TOOL]}... and {len(text) - MAX_TOOL:,} more characters"


def read_parts(content: Any, context: Context) -> Iterator[Said]:
    """Yield the parts of a message's content: a text, a list of parts, or a single one. Raises ValueError."""
    if content is None or content == "":
        return
    if isinstance(content, dict) and isinstance(content.get("parts"), list):  # ChatGPT's
        content = content["parts"]
    if isinstance(content, str | dict):
        content = [content]
    if not isinstance(content, list):
        raise ValueError(f"content must be a string or a list of parts, got {type(content).__name__}")
    for part in content:
        if isinstance(part, str):
            if part.strip():
                yield Said("", part)
        elif isinstance(part, dict):
            yield from _part(part, context)
        else:
            raise ValueError(f'a part of content must be a string or like {{"type": "text", "text": "..."}}, got {type(part).__name__}')


MEDIA: Final = ("mimeType", "mime_type", "mediaType", "media_type")
STRUCTURE: Final = frozenset({"step-start", "real_time_user_audio_video_asset_pointer", "audio_asset_pointer"})
"""Parts without words of their own: marks, and recordings whose transcript is another part."""

_KINDS: Final[dict[str, str]] = {
    **dict.fromkeys(("image", "image_url", "input_image", "image_file", "image_asset_pointer", "media_image"), "picture"),
    **dict.fromkeys(
        (
            "thinking",
            "redacted_thinking",
            "redacted_reasoning",
            "omitted_reasoning",
            "summarized_reasoning",
            "reasoning",
            "thoughts",
            "reasoning_recap",
            "reasoning_content",
            "think",
        ),
        "reasoning",
    ),
    **dict.fromkeys(
        ("tool_use", "server_tool_use", "mcp_tool_use", "tool_call", "tool-call", "function_call", "custom_tool_call", "functionCall"),
        "call",
    ),
    **dict.fromkeys(
        (
            "tool_result",
            "tool_return",
            "mcp_tool_result",
            "web_search_tool_result",
            "tool-result",
            "function_call_output",
            "functionResponse",
        ),
        "result",
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
        inner = part.get("tool_call")
        if isinstance(inner, dict) and inner.get("output") not in (None, ""):  # LibreChat's
            yield write_result(first_text(inner, "name"), inner["output"], context)
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
    both = (part, _mapping(part, "audio", "input_audio"))
    text = next((each[key] for each in both for key in ("text", "refusal", "transcript") if each.get(key) is not None), None)
    text = text.get("value") if isinstance(text, dict) else text
    if text is not None and not isinstance(text, str):
        raise ValueError(f"the text of a part must be a string, got {type(text).__name__}")
    if text and text.strip():
        yield Said("", text)
    elif kind == "input_audio":
        yield Said("", "[shares a recording]")
    elif text is None and kind not in STRUCTURE:
        yield Said("", f"parts of type {kind:.40}" if kind else "parts without a text", "skipped")


def _inline(part: Mapping[str, Any]) -> str:
    """Return the media type of data within a part, or nothing."""
    inner = _mapping(part, "inlineData", "inline_data", "fileData", "file_data")
    found = first_text(inner, *MEDIA) or first_text(part, *MEDIA)
    return found or ("file" if inner else "")


def _mapping(value: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """Return the first of the values under these keys that is an object, or an empty one."""
    return next((value[key] for key in keys if isinstance(value.get(key), dict)), {})


def _file(part: Mapping[str, Any], context: Context) -> str:
    """Return a file as a text: its name, and its content if that is a text."""
    name = first_text(_mapping(part, "file") or part, "title", "filename", "file_name", "fileName", "name")
    source = _mapping(part, "source")
    text = first_text(part, "extracted_content", "extracted_text")
    if source.get("type") in ("text", "content"):
        text = "\n".join(each.text for each in read_parts(source.get("data") or source.get("content"), context) if each.kind == "said")
    return f"[shares a file{': ' if name else ''}{name}]" + (f"\n{text}" if text else "")


def _result(part: Mapping[str, Any], context: Context) -> Said:
    inner = _mapping(part, "functionResponse") or part
    called = first_text(inner, "tool_use_id", "call_id", "tool_call_id", "toolCallId")
    given = next((inner[key] for key in ("output", "content", "result", "response") if inner.get(key) is not None), "")
    name = first_text(inner, "name", "toolName") or context.calls.get(called, "")
    return write_result(name, _result_text(given, context), context)


def _result_text(given: Any, context: Context) -> Any:
    """Return the text of a result that is a list of parts, or else the result."""
    if isinstance(given, dict) and isinstance(given.get("type"), str) and "value" in given:  # AI SDK's
        given = given["value"]
    if isinstance(given, list) and given and all(isinstance(each, dict) and ("text" in each or "type" in each) for each in given):
        return "\n".join(part.text for part in read_parts(given, context) if part.kind != "skipped") or given
    return given


def _sdk_tool(kind: str, part: Mapping[str, Any], context: Context) -> Iterator[Said]:
    """Yield the call and the result of a tool part of Vercel's AI SDK."""
    inner = _mapping(part, "toolInvocation") or part
    name = first_text(inner, "toolName") or kind.removeprefix("tool-")
    yield write_call(name, inner.get("input", inner.get("args", {})), context)
    given = next((inner[key] for key in ("output", "result", "errorText") if inner.get(key) is not None), None)
    if given is not None:
        yield write_result(name, _result_text(given, context), context)
