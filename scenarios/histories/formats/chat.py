"""Messages as in the requests of OpenAI, Anthropic and most other chat APIs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from longspan.scenarios.histories.formats.messages import Context, LogFormat, Said, number_messages, read_message, role_of
from longspan.scenarios.histories.formats.times import find_time

__all__ = ["CONVERSATION", "MESSAGE"]


def _read_conversation(value: Mapping[str, Any], context: Context) -> Iterator[Said]:
    if not isinstance(value["messages"], list):
        raise ValueError("messages must be a list of messages")
    system = value.get("system")  # Anthropic's requests keep it outside the messages
    messages = [*([{"role": "system", "content": system}] if system else []), *_flatten(value["messages"]), *_answers(value)]
    return number_messages(messages, context, context.dispatch, at=find_time(value))


def _flatten(messages: list[Any]) -> Iterator[Any]:
    """Yield messages, which LangSmith keeps in a list within a list."""
    for each in messages:
        yield from each if isinstance(each, list) else [each]


def _answers(value: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the answer to a request that is kept next to its messages."""
    given = next((value[key] for key in ("choices", "response", "completion", "output") if value.get(key)), None)
    given = given["choices"] if isinstance(given, dict) and isinstance(given.get("choices"), list) else given
    given = given[0] if isinstance(given, list) and given else given
    given = given["message"] if isinstance(given, dict) and isinstance(given.get("message"), dict) else given
    if isinstance(given, str):
        yield {"role": "assistant", "content": given}
    elif isinstance(given, dict) and role_of(given) is not None:
        yield given


CONVERSATION: Final = LogFormat(
    "chat",
    "conversations with messages, as in requests to OpenAI and Anthropic, and in fine-tuning files",
    '{"messages": [{"role": "user", "content": "My cat is Olive."}]}',
    lambda value: "messages" in value,
    _read_conversation,
)

MESSAGE: Final = LogFormat(
    "chat-message",
    "messages of chat APIs and libraries, each on its own line or in a list",
    '{"role": "user", "content": "My cat is Olive."}',
    lambda value: role_of(value) is not None,
    read_message,
    alone=True,
)
