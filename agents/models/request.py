"""A request to a model behind an API, before a vendor's format."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Self, final

from longspan.agents.base import Usage
from longspan.agents.models.core import ChatMessage, Tool

__all__ = ["STATELESS", "Request", "ServerState"]

ROLE_TOKENS: Final = 8
"""The maximum tokens that a provider adds to each message."""

NO_TEXT: Final = "(empty)"

JSON_RULE: Final = "Answer with a JSON object and nothing else. It must match this JSON schema:"


@final
class ServerState(NamedTuple):
    """The state of a conversation that the server keeps, of `tokens` tokens if known, as a request names it in its body and headers."""

    fields: Mapping[str, Any]
    headers: Mapping[str, str]
    tokens: int


STATELESS: Final = ServerState({}, {}, 0)


@final
@dataclass(frozen=True)
class Request:
    """A request: a system message, the conversation, the answer's maximum tokens and its JSON schema.

    The model gets the definitions of `tools`. Without `may_call`, the request forbids calls. `json_object` requests JSON without enforcing
    the schema. `left_out` lists fields to remove from the body, as dotted paths. `other_limit`: use the other name of the maximum tokens.
    `other_stream`: stream the answer if the options do not, or vice versa. The messages follow those of the server's `state`.
    """

    system: str
    messages: Sequence[ChatMessage]
    max_tokens: int
    schema: dict[str, Any] | None
    tools: Sequence[Tool] = ()
    may_call: bool = True
    json_object: bool = False
    left_out: tuple[str, ...] = ()
    other_limit: bool = False
    other_stream: bool = False
    state: ServerState = STATELESS

    @classmethod
    def of(
        cls,
        messages: Sequence[ChatMessage],
        max_tokens: int,
        schema: Mapping[str, Any] | None,
        tools: Sequence[Tool] = (),
        may_call: bool = True,
    ) -> Self:
        """Return a request whose system messages are joined to one."""
        system = "\n\n".join(message.text for message in messages if message.role == "system")
        others = [message for message in messages if message.role != "system"]
        return cls(system, others, max_tokens, dict(schema) if schema is not None else None, tools, may_call)

    @property
    def at_most(self) -> Usage:
        """An upper estimate of the tokens of prompt and answer. English has about four bytes per token, other scripts at least three."""
        texts = [self.system, *(message.text for message in self.messages), *(json.dumps(tool.parameters) for tool in self.tools)]
        size = sum(len(text) if text.isascii() else len(text.encode("utf-8", "replace")) for text in texts)
        return Usage(self.state.tokens + size // 3 + ROLE_TOKENS * len(texts), 0, self.max_tokens)

    @property
    def brief(self) -> Request:
        """This request with only an empty message and the last one, which is enough to see what an adaptation changes."""
        empty = [message for message in self.messages[:-1] if _is_empty(message)][:1]
        return replace(self, messages=[*empty, *self.messages[-1:]])

    def without(self, *fields: str) -> Request:
        """Return this request without some fields of its body."""
        return replace(self, left_out=(*self.left_out, *fields))

    def merge_system(self) -> Request:
        """Return this request with the system message at the start of the first user message."""
        at = next((at for at, message in enumerate(self.messages) if message.role == "user"), None)
        if not self.system or at is None:
            return self
        first = self.messages[at]
        merged = first._replace(text=f"{self.system}\n\n{first.text}")
        return replace(self, system="", messages=[*self.messages[:at], merged, *self.messages[at + 1 :]])

    def fill_empty(self) -> Request:
        """Return this request with a placeholder for the text of empty messages."""
        return replace(self, messages=[each._replace(text=NO_TEXT) if _is_empty(each) else each for each in self.messages])

    def swap_limit(self) -> Request:
        """Return this request with the other name of the maximum tokens."""
        return replace(self, other_limit=not self.other_limit)

    def swap_stream(self) -> Request:
        """Return this request for a stream instead of a whole answer, or vice versa."""
        return replace(self, other_stream=not self.other_stream)

    def write_schema(self, *, json_object: bool) -> Request:
        """Return this request with the JSON schema written into the last message, and with or without the vendor's JSON mode."""
        if self.schema is None:
            return replace(self, json_object=self.json_object and json_object)
        *others, last = self.messages
        asked = last._replace(text=f"{last.text}\n\n{JSON_RULE}\n{json.dumps(self.schema)}")
        return replace(self, messages=[*others, asked], schema=None, json_object=json_object)

    def trim(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a body without the fields that are left out."""
        for path in self.left_out:
            body = _remove(body, path.split("."))
        return body


def _is_empty(message: ChatMessage) -> bool:
    return message.raw is None and not message.text.strip()


def _remove(body: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Return a copy of JSON without the field at a path."""
    name, *more = path
    if name not in body:
        return body
    if not more:
        return {other: value for other, value in body.items() if other != name}
    return body | {name: _remove(body[name], more)} if isinstance(body[name], dict) else body
