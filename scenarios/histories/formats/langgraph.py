"""LangGraph's states and checkpoints. Each has all messages so far, so those of later ones are mostly repeated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from longspan.scenarios.histories.formats.messages import Context, LogFormat, Said, first_text, number_messages
from longspan.scenarios.histories.formats.times import find_time

__all__ = ["LANGGRAPH"]

PATHS: Final = (("values",), ("channel_values",), ("checkpoint", "channel_values"), ("state", "values"), ("state",))


def _inside(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _messages(value: Any) -> list[Any] | None:
    found = (_inside(value, (*path, "messages")) for path in PATHS)
    return next((each for each in found if isinstance(each, list)), None)


def _read(value: Mapping[str, Any], context: Context) -> Iterator[Said]:
    thread = next((name for key in ("config", "metadata") if (name := _thread(value.get(key)))), "")
    at = find_time(value) or find_time(_inside(value, ("checkpoint",)) or {})
    return number_messages(_messages(value), context, at=at, thread=thread)


def _thread(config: Any) -> str:
    inner = _inside(config, ("configurable",)) or config
    return first_text(inner, "thread_id") if isinstance(inner, dict) else ""


LANGGRAPH: Final = LogFormat(
    "langgraph",
    "states and checkpoints of LangGraph",
    '{"values": {"messages": [{"type": "human", "content": "My cat is Olive."}]}}',
    lambda value: _messages(value) is not None,
    _read,
    ordered=True,
)
