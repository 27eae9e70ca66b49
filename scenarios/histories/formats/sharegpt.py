"""ShareGPT: conversations in data sets for fine-tuning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from longspan.scenarios.histories.formats.messages import Context, LogFormat, Said, number_messages
from longspan.scenarios.histories.formats.times import find_time

__all__ = ["SHAREGPT"]


def _read(value: Mapping[str, Any], context: Context) -> Iterator[Said]:
    key = "conversations" if "conversations" in value else "conversation"
    if not isinstance(value[key], list):
        raise ValueError(f"{key} must be a list of messages")
    system = value.get("system") or value.get("system_prompt")
    messages = [*([{"from": "system", "value": system}] if isinstance(system, str) else []), *value[key]]
    return number_messages(messages, context, at=find_time(value))


SHAREGPT: Final = LogFormat(
    "sharegpt",
    "ShareGPT's conversations, with function_call and observation",
    '{"conversations": [{"from": "human", "value": "My cat is Olive."}]}',
    lambda value: "conversations" in value or isinstance(value.get("conversation"), list),
    _read,
    ordered=True,
)
