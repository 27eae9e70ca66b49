"""ShareGPT: conversations in data sets for fine-tuning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from longspan.scenarios.histories.formats.messages import Context, LogFormat, Said, number_messages, role_of
from longspan.scenarios.histories.formats.times import find_time

__all__ = ["SHAREGPT"]


def _read(value: Mapping[str, Any], context: Context) -> Iterator[Said]:
    key = "conversations" if _is_list_of_messages(value.get("conversations")) else "conversation"
    system = value.get("system") or value.get("system_prompt")
    messages = [*([{"from": "system", "value": system}] if isinstance(system, str) else []), *value[key]]
    return number_messages(messages, context, at=find_time(value))


def _is_list_of_messages(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(each, dict) and role_of(each) is not None for each in value)


SHAREGPT: Final = LogFormat(
    "sharegpt",
    "ShareGPT's conversations, with function_call and observation",
    '{"conversations": [{"from": "human", "value": "My cat is Olive."}]}',
    lambda value: any(_is_list_of_messages(value.get(key)) for key in ("conversations", "conversation")),
    _read,
    ordered=True,
)
