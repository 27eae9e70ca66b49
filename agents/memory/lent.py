"""A model and an embedder lent to memory systems over a loopback address that speaks OpenAI's API.

All systems thus run with the same model and embedder, of any kind that longspan supports, including local ones. Usage is counted here,
whether or not the systems report it.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Annotated, Any, Final, Literal, TypeVar, final

from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, Field

from longspan.agents.base import AgentError, Usage
from longspan.agents.memory.guarded_server import LIMITS, GuardedServer, Limits
from longspan.agents.memory.ltm.embedders import Embedder
from longspan.agents.memory.memory import Used
from longspan.agents.models.core import ChatMessage, Completion, Core, RefusalError, Tool, clean_unicode
from longspan.agents.outside.counts import sum_of
from longspan.simulator.base.files.file_io import parse_json

__all__ = ["LentModels"]

MODEL: Final = "memory"
"""The lent model's role in the usage."""

EMBEDDER: Final = "embedder"
"""The lent embedder's role in the usage."""

NO_MODEL: Final = "the memory asks for a model, and none is lent to it: add model=KIND/MODEL, such as model=local"

T = TypeVar("T")


class _Part(BaseModel):
    """A part of a request. Other fields of OpenAI's API are ignored."""

    model_config = ConfigDict(strict=True)


Items = Annotated[list[T], FailFast()]
"""A list that reports only its first invalid item, since a million may be invalid."""


class _Piece(_Part):
    type: str
    text: str = ""


def _pieces(content: Any) -> Any:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


class _Message(_Part):
    role: Literal["system", "developer", "user", "assistant"]
    content: Annotated[Items[_Piece], BeforeValidator(_pieces)] = []

    def as_sent(self) -> ChatMessage:
        """Return the message in a core's format."""
        role = "system" if self.role == "developer" else self.role
        return ChatMessage(role, "\n".join(piece.text for piece in self.content if piece.type == "text"))


class _Schema(_Part):
    of: dict[str, Any] | None = Field(default=None, alias="schema")


class _Format(_Part):
    type: str
    json_schema: _Schema = _Schema()


class _Function(_Part):
    name: str = Field(min_length=1)
    description: str | None = None
    parameters: dict[str, Any] | None = None


class _Tool(_Part):
    function: _Function


class _ChatRequest(_Part):
    messages: Annotated[Items[_Message], Field(min_length=1)]
    stream: bool | None = None
    response_format: _Format | None = None
    tools: Annotated[Items[_Tool], BeforeValidator(lambda tools: tools or [])] = []
    max_tokens: int | None = Field(default=None, gt=0)
    max_completion_tokens: int | None = Field(default=None, gt=0)

    @property
    def schema_of_answer(self) -> dict[str, Any] | None:
        """The JSON schema that the answer must match, if any."""
        if self.response_format is None or self.response_format.type == "text":
            return None
        return {"type": "object"} if self.response_format.type == "json_object" else self.response_format.json_schema.of


class _EmbeddingsRequest(_Part):
    input: Annotated[Items[str], BeforeValidator(lambda given: [given] if isinstance(given, str) else given), Field(min_length=1)]
    encoding_format: str | None = None


Request = TypeVar("Request", bound=_Part)


def _parse(body: bytes, kind: type[Request]) -> Request:
    """Parse a request. Raises ValueError and InputError."""
    # JSON has no NaN and no duplicate keys, but Python's parser accepts both. A core could not send a lone surrogate.
    return kind.model_validate_json(
        clean_unicode(json.dumps(parse_json(body.decode(), "the request", unique=True), ensure_ascii=False, allow_nan=False))
    )


@final
class LentModels:
    """An optional `core` and an `embedder`, lent at `url` to clients that send `key`. They are served in a separate thread until closed."""

    def __init__(self, core: Core | None, embedder: Embedder, limits: Limits = LIMITS) -> None:
        self._core, self._embedder, self._limits = core, embedder, limits
        self._used: dict[str, list[Usage]] = {}
        self.asked = self.tokens = 0
        self._broken = self._closed = False
        self._lock = Lock()
        self._server: GuardedServer | None = None

    @property
    def url(self) -> str:
        """The base address. Reading it or the key starts the server. Raises AgentError if that fails."""
        return f"http://{self._serve().host}/v1"

    @property
    def key(self) -> str:
        """The random API key that the address requires. It must not be written anywhere."""
        return self._serve().key

    @contextmanager
    def broken(self) -> Iterator[None]:
        """Fail all requests in the meantime."""
        self._broken = True
        try:
            yield
        finally:
            self._broken = False

    def take(self) -> Used:
        """Return usage by role since the last call. A free embedder has no usage."""
        with self._lock:
            used, self._used = self._used, {}
        return Used({role: sum_of(usages) for role, usages in used.items()})

    def close(self) -> None:
        """Stop serving. Later requests fail."""
        with self._lock:
            server, self._server, self._closed = self._server, None, True
        if server is not None:
            server.close()  # without the lock: a call in progress needs it to record its usage

    def _serve(self) -> GuardedServer:
        with self._lock:
            if self._closed:
                raise AgentError("the lent models are closed")
            if self._server is None:
                routes = {"/v1/embeddings": self._embeddings, "/v1/chat/completions": self._completion}
                self._server = GuardedServer(routes, self._limits)
            return self._server

    def _count(self, role: str, usage: Usage) -> None:
        with self._lock:
            self._used.setdefault(role, []).append(usage)
            self.tokens += usage.input_tokens + usage.output_tokens

    async def _ask(self, role: str, call: Awaitable[T], usage_of: Callable[[T], Usage | None]) -> T:
        """Return a call's result after counting its usage. A refusal has been paid for too."""
        usage: Usage | None = None
        try:
            result = await call
            usage = usage_of(result)
        except RefusalError as error:
            usage = error.usage
            raise
        finally:
            if usage is not None:
                self._count(role, usage)
        return result

    def _note_request(self) -> None:
        """Count a request. Raises AgentError while `broken` is active."""
        self.asked += 1
        if self._broken:
            raise AgentError("this fails on purpose, to see whether the memory reports that it could not store something")

    async def _embeddings(self, body: bytes) -> dict[str, Any]:
        self._note_request()
        request = _parse(body, _EmbeddingsRequest)
        free = self._embedder.model is None
        call = self._embedder.embed([text or " " for text in request.input])
        found = await self._ask(EMBEDDER, call, lambda found: None if free else Usage(found.tokens))
        if request.encoding_format == "base64":
            rows = [b64encode(row.astype("<f4").tobytes()).decode() for row in found.vectors]
        else:
            rows = found.vectors.tolist()
        data = [{"object": "embedding", "index": number, "embedding": row} for number, row in enumerate(rows)]
        usage = {"prompt_tokens": found.tokens, "total_tokens": found.tokens}
        return {"object": "list", "model": self._embedder.name, "data": data, "usage": usage}

    async def _completion(self, body: bytes) -> dict[str, Any]:
        self._note_request()
        core = self._core
        if core is None:
            raise AgentError(NO_MODEL)
        request = _parse(body, _ChatRequest)
        if request.stream:
            raise ValueError("stream: answers are not streamed; ask without stream")
        messages = _merge_messages([message.as_sent() for message in request.messages])
        tools = [
            Tool(each.function.name, each.function.description or "", each.function.parameters or {"type": "object"})
            for each in request.tools
        ]
        use_tools: Any = getattr(core, "use_tools", None)
        if tools and not callable(use_tools):
            raise AgentError(f"the memory gives its model tools, which {core.name} cannot call: lend another by model=KIND/MODEL")
        most = request.max_completion_tokens or request.max_tokens
        most = min(most, core.max_output) if most else None
        call = use_tools(messages, tools) if tools else core.complete(messages, max_tokens=most, schema=request.schema_of_answer)
        completion: Completion = await self._ask(MODEL, call, lambda completion: completion.usage)
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}} for call in completion.calls
        ]
        said: dict[str, Any] = {"role": "assistant", "content": completion.text or None} | ({"tool_calls": calls} if calls else {})
        usage = completion.usage
        counts = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
        return {
            "id": f"lent-{self.asked}",
            "object": "chat.completion",
            "created": 0,
            "model": core.name,
            "choices": [{"index": 0, "message": said, "finish_reason": "tool_calls" if calls else "length" if completion.cut else "stop"}],
            "usage": counts | {"total_tokens": usage.input_tokens + usage.output_tokens},
        }


def _merge_messages(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Return messages in the order that cores accept.

    One system message comes first. User and assistant messages then alternate, starting and ending with the user.
    """
    system = "\n\n".join(message.text for message in messages if message.role == "system")
    merged: list[ChatMessage] = []
    for message in messages:
        if message.role == "system":
            continue
        if merged and merged[-1].role == message.role:
            merged[-1] = ChatMessage(message.role, f"{merged[-1].text}\n\n{message.text}")
        else:
            merged.append(message)
    if not merged:
        return [ChatMessage("user", system)]
    if merged[0].role == "assistant":
        merged.insert(0, ChatMessage("user", "(The conversation so far.)"))
    if merged[-1].role == "assistant":
        merged.append(ChatMessage("user", "Go on."))
    return [*([ChatMessage("system", system)] if system else []), *merged]
