"""The common base of chat models behind vendors' APIs."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Annotated, Any, ClassVar, Final, Literal, NoReturn

from pydantic import BeforeValidator, Field

from longspan.agents.base import AgentError, Danger, Tokens, Usage
from longspan.agents.models.core import ChatMessage, Completion, Cut, RefusalError, Tool, ToolCall, clean_json, clean_unicode
from longspan.agents.models.dialect import find_dialect
from longspan.agents.models.limits import TransientError
from longspan.agents.models.provider import Provider, ProviderOptions, Vendor
from longspan.agents.models.request import STATELESS, Request, ServerState
from longspan.agents.models.thinking import split_thinking
from longspan.agents.models.web import refusal_in
from longspan.agents.prices import is_price
from longspan.simulator.base.keys import redact, redact_json
from longspan.simulator.base.tokens import EncodingName, Tokenizer
from longspan.simulator.subject.ledger import Rates
from longspan.simulator.subject.purse import note_used
from longspan.simulator.subject.replies import KeptCall, KeptReply, current_replies, key_of
from longspan.simulator.subject.telemetry import model_call

__all__ = ["ApiCore", "ApiOptions", "ServerAnswer", "dig_value", "is_stream", "merge_body", "parse_events", "parse_usage"]

ESTIMATED_TOKENS: Final = 1.2
"""The assumed number of a model's tokens per o200k token, if its tokenizer is not available. Current tokenizers need 0.9 to 1.4 tokens per
o200k token of English text. The provider's counts later correct the windows.
"""

MAX_COUNT: Final = 10**9
"""The maximum plausible token count; larger reports are ignored."""

MAX_REASON: Final = 60
"""The maximum characters of a refusal's reason."""

RESERVED: Final = frozenset(
    "candidateCount contents max_completion_tokens maxOutputTokens max_tokens messages model n stream stream_options "
    "system systemInstruction".split()
)
"""Fields of a request that users may not set: they determine its price, its limits and how its answer is parsed."""


EVENTS: Final = re.compile(rb"\s*(data|event|id|retry)?:")
"""The start of a stream of server-sent events."""

TEXTS: Final = ("text", "thinking", "reasoning", "summary", "content", "value")
"""The fields of an answer's parts with their texts."""

SECRET: Final = re.compile(r"api[-_]?key|(access|auth|refresh|bearer)[-_]?token|authorization|secret|passw|credential", re.IGNORECASE)
"""Names of fields that could hold a secret."""


def _names(value: object) -> Iterator[str]:
    """Yield the names of all fields in JSON."""
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            yield from each
        if isinstance(each, dict | list):
            left += each.values() if isinstance(each, dict) else each


def _body(given: object) -> object:
    """Parse an option's JSON of extra request fields.

    Raises ValueError if it is not an object, sets one of `RESERVED` or may hold a key.
    """
    try:
        body = json.loads(given, parse_constant=_no_constant) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        raise ValueError('expected JSON, such as {"service_tier": "flex"}') from None
    if not isinstance(body, dict):
        raise ValueError(f"expected a JSON object, got {type(body).__name__}")
    if secret := next(filter(SECRET.search, _names(body)), None):
        raise ValueError(f"{secret!r:.60} could be a key, which would be written to files: name the key's variable with key_env=")
    inner = body.get("generationConfig")
    if taken := sorted(RESERVED & (body.keys() | (inner.keys() if isinstance(inner, dict) else set()))):
        raise ValueError(f"{', '.join(taken)} cannot be set")
    return body


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


Temperature = Annotated[float, Field(ge=0, le=2)]


class ApiOptions(ProviderOptions):
    """The settings of requests to a model behind an API."""

    max_tokens: Tokens = 4096
    """The most tokens of an answer, thinking included."""
    temperature: Annotated[Temperature | None, BeforeValidator(lambda value: None if value == "none" else value)] = None
    """From 0 to 2; `none` leaves it to the provider. Default: the provider's, or 0 for a judge."""
    top_p: float | None = Field(default=None, gt=0, le=1, allow_inf_nan=False)
    """Sample from the likeliest tokens that together have this probability, above 0 and up to 1. Default: the provider's."""
    stream: bool = False
    """Receive the answer in pieces, for servers that close idle connections."""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    """How much the model thinks: `none`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`; each model takes some. Default: the
    provider's."""
    keep_thinking: bool = False
    """Leave the thoughts between `<think>` and `</think>` in the reply, instead of in its trace."""
    extra_body: Annotated[Mapping[str, Any], BeforeValidator(_body)] = {}
    """A JSON object that is merged into the body of every request, such as {"service_tier":"flex"}. It cannot set the model, the messages,
    the number and length of answers, or `stream`, and holds no key: it is written to files."""


class ServerAnswer:
    """An answer as it arrives, whole or in pieces.

    `done`: the provider has marked its end. `truncated`: it reached the maximum length. `refusal`: why the model refused, or None.
    `called`: it tried to call a tool, even an unknown one or with a malformed call. `calls`: the valid calls. With calls, `raw` is the
    answer in the vendor's format. `id`: the server's name for it.
    """

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.calls: list[ToolCall] = []
        self.raw: Any = None
        self.usage: Usage | None = None
        self.done = False
        self.truncated = False
        self.refusal: str | None = None
        self.called = False
        self.thoughts: list[str] = []
        self.id = ""

    def think(self, text: object) -> None:
        """Add a piece of the model's thoughts, if it is a string."""
        if isinstance(text, str):
            self.thoughts.append(text)

    def refuse(self, why: object) -> None:
        """Record that the model refuses. A second reason changes nothing."""
        self.refusal = self.refusal or " ".join(redact(clean_unicode(str(why))).split())[:MAX_REASON] or "refused"

    def add(self, text: object) -> None:
        """Add a piece of text. Raises TransientError if it is not a string."""
        if not isinstance(text, str):
            raise TransientError(f"gave an unreadable answer: expected text, got {type(text).__name__}")
        self.pieces.append(text)

    def add_content(self, content: object) -> None:
        """Add a string, or a list of parts: text, and thinking. Other parts are ignored. Raises TransientError for anything else."""
        for part in content if isinstance(content, list) else [content]:
            if not isinstance(part, dict):
                self.add(part)
            elif re.search("think|reason", kind := str(part.get("type", "text"))):
                self.think("".join(_texts(part)))
            elif "text" in kind:
                self.add("".join(_texts(part)))

    def add_call(self, id: object, name: object, arguments: object) -> None:
        """Add a tool call with arguments as JSON or a string.

        It is dropped without a string id and name, since it could not be answered.
        """
        self.called = True
        if isinstance(id, str) and isinstance(name, str):
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            self.calls.append(ToolCall(*(redact(clean_unicode(part)) for part in (id, name, text))))


class ApiCore(ABC):
    """A chat model behind a vendor's API. Calls may overlap. `attempts` counts requests, repeated ones included.

    Raises InputError without the vendor's library, the key or the model's name.
    """

    vendor: ClassVar[Vendor]
    overhead = 4

    def __init__(self, target: str, options: ApiOptions) -> None:
        self.options = options
        self.model = target
        self.provider = Provider(self.vendor, target, options)
        self.name = self.provider.name
        self.priced_as: str | Rates = self.provider.priced_as
        self.window = _window(self.name) if self.provider.official else None
        self.dialect = find_dialect(type(self).__qualname__, self.provider.url, target)
        self.max_output = options.max_tokens
        self.attempts = 0
        encoding, self._factor = self.encoding()
        self._tokenizer = Tokenizer(encoding)

    @classmethod
    def danger(cls, target: str, options: Mapping[str, str]) -> Danger | None:
        """Return its danger: options can send another secret as the key, or spend the user's money."""
        sent = ("key_env", "extra_body")
        return "send" if any(name in sent or name.startswith("header.") or is_price(name) for name in options) else None

    @classmethod
    def from_environment(cls, options: ApiOptions) -> dict[str, str]:
        """Return the options that the environment sets and `options` do not: the address."""
        address = cls.vendor.address() if options.base_url is None else cls.vendor.url
        return {} if address == cls.vendor.url else {"base_url": address}

    def encoding(self) -> tuple[EncodingName, float]:
        """Return the encoding used for counting, and the model's tokens per token of it."""
        return "o200k_base", ESTIMATED_TOKENS

    def count(self, text: str) -> int:
        """Return the tokens of `text`, by the model's tokenizer if available, else by estimate."""
        return ceil(self._tokenizer.count(text) * self._factor)

    async def complete(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        return await self._complete(Request.of(messages, max_tokens or self.max_output, schema))

    async def use_tools(self, messages: Sequence[ChatMessage], tools: Sequence[Tool], *, may_call: bool = True) -> Completion:
        """Return the model's answer, or its calls of `tools` (see `ToolCore`)."""
        return await self._complete(Request.of(messages, self.max_output, None, tools, may_call))

    async def _attempt(self, request: Request) -> tuple[tuple[Completion, str | None], Usage]:
        """Make a request. Return the answer, the reason of a refusal, and the usage. Raises RejectedError and other AgentErrors."""

        async def send(client: Any) -> tuple[tuple[Completion, str | None], Usage]:
            self.attempts += 1
            try:
                answer = await self.ask(client, request)
            except Exception as error:
                if (refused := refusal_in(error)) is None:
                    raise
                answer = ServerAnswer()
                answer.done = True
                answer.refuse(refused)
            usage = answer.usage or self._estimate_usage(request, answer)
            note_used(usage)  # before parsing the text, which may fail
            (text, thinking), calls = self._complete_text(answer, request), answer.calls if request.tools and request.may_call else []
            if answer.called and not text and not calls:
                answer.refuse("a tool call")
            cut: Cut = "max_tokens" if answer.truncated and answer.refusal is None else ""
            raw = redact_json(clean_json(answer.raw))
            return (Completion(text, usage, tuple(calls), raw, thinking, cut, id=answer.id), answer.refusal), usage

        return await self.provider.call(send, request.at_most)

    async def go_on(self, messages: Sequence[ChatMessage], state: ServerState) -> Completion:
        """Return the model's answer to messages that continue a conversation that the server keeps. Errors are those of `complete`."""
        return await self._complete(replace(Request.of(messages, self.max_output, None), state=state))

    async def _complete(self, request: Request) -> Completion:
        replies = current_replies() if request.state is STATELESS else None  # otherwise, a reply depends on more than its prompt
        key = key_of(self._cache_key(request)) if replies is not None else ""
        if replies is not None and (kept := replies.find(key)) is not None:
            completion, refusal, usage = _from_kept(kept)
        else:
            with model_call(self.name) as used:
                (completion, refusal), usage = await self.dialect.send(request, self.body, self._attempt)
                used(usage)
            completion = completion._replace(dropped=self.dialect.dropped(request, self.body))
            if replies is not None:
                replies.add(_to_keep(key, completion, refusal))
        if refusal is not None:
            text = completion.text
            raise RefusalError(f"{self.name}: refused to answer: {' '.join(text[:600].split())[:300] or refusal}", refusal, text, usage)
        return completion

    def _cache_key(self, request: Request) -> object:
        """Return everything that a reply depends on, as JSON: the model, its options, and the prompt."""
        shaping = {"max_tokens", "temperature", "top_p", "reasoning_effort", "thinking_budget", "keep_thinking", "extra_body"}
        options = self.options.model_dump(mode="json", include=shaping & type(self.options).model_fields.keys(), exclude_defaults=True)
        address = "" if self.provider.official else self.provider.url
        prompt = [(message.role, message.text, message.call, message.raw) for message in request.messages]
        asked = [request.system, prompt, request.max_tokens, request.schema, [tuple(tool) for tool in request.tools], request.may_call]
        return [self.vendor.kind, address, self.model, options, *asked]

    @abstractmethod
    def body(self, request: Request) -> dict[str, Any]:
        """Return a request in the vendor's format."""

    @abstractmethod
    async def ask(self, client: Any, request: Request) -> ServerAnswer:
        """Return the answer of the vendor's API. The caller translates its errors."""

    def _complete_text(self, answer: ServerAnswer, request: Request) -> tuple[str, str]:
        """Return an answer's text and its thinking. Raises TransientError if its end is missing, AgentError if it is all thinking."""
        if not answer.done:
            raise TransientError("stopped before the end of its answer")
        text, thought = redact(clean_unicode("".join(answer.pieces))), redact(clean_unicode("".join(answer.thoughts)))
        if not self.options.keep_thinking:
            text, written = split_thinking(text)
            thought = "\n".join(filter(None, (thought, written)))
        if answer.truncated and not text and answer.refusal is None and not answer.called:
            raise AgentError(f"used all {request.max_tokens:,} tokens of its answer for thinking: set a larger max_tokens=")
        return text, thought

    def _estimate_usage(self, request: Request, answer: ServerAnswer) -> Usage:
        """Return the usage by our count, for a provider that does not report it."""
        texts = [request.system, *(message.text for message in request.messages)]
        return Usage(sum(self.count(text) + self.overhead for text in texts if text), 0, self.count("".join(answer.pieces)))


def _to_keep(key: str, completion: Completion, refusal: str | None) -> KeptReply:
    text, usage, calls, raw, thinking, cut, dropped, _ = completion
    used = {"input_tokens": usage.input_tokens, "cached_tokens": usage.cached_tokens, "output_tokens": usage.output_tokens}
    made = [KeptCall(id=call.id, name=call.name, arguments=call.arguments) for call in calls]
    told = {"thinking": thinking, "cut": cut, "dropped": list(dropped), "refusal": refusal}
    return KeptReply.model_validate({"key": key, "text": text, "calls": made, "raw": raw if calls else None} | used | told)


def _from_kept(kept: KeptReply) -> tuple[Completion, str | None, Usage]:
    usage = Usage(kept.input_tokens, kept.cached_tokens, kept.output_tokens)
    calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in kept.calls)
    return Completion(kept.text, usage, calls, kept.raw, kept.thinking, kept.cut, tuple(kept.dropped)), kept.refusal, usage


def parse_usage(*, inputs: object, cached: object, output: object) -> Usage | None:
    """Convert a provider's counts to a Usage; None if they are missing or impossible."""
    if not isinstance(inputs, int) or not isinstance(output, int) or not 0 < inputs <= MAX_COUNT or not 0 <= output <= MAX_COUNT:
        return None
    return Usage(inputs, min(cached, inputs) if isinstance(cached, int) and cached > 0 else 0, output)


def _texts(part: object) -> Iterator[str]:
    """Yield the texts in a part of an answer, which may contain parts itself."""
    if isinstance(part, str):
        yield part
    for each in part if isinstance(part, list) else map(part.get, TEXTS) if isinstance(part, dict) else ():
        yield from _texts(each)


def is_stream(body: bytes) -> bool:
    """Return whether an answer's body is a stream of server-sent events. Servers may ignore what was requested."""
    return EVENTS.match(body) is not None


def parse_events(body: bytes) -> list[Any]:
    """Return the JSON values of an answer's body: one, or one per server-sent event, whichever the server chose.

    Raises ValueError for invalid JSON.
    """
    if not is_stream(body):
        return [json.loads(body)]
    values = []
    for event in body.replace(b"\r\n", b"\n").split(b"\n\n"):
        data = b"\n".join(line[5:].lstrip() for line in event.split(b"\n") if line.startswith(b"data:"))
        if data and data != b"[DONE]":
            values.append(json.loads(data))
    return values


def merge_body(body: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request's body with more fields. Objects in both are merged recursively."""
    both = {
        name: merge_body(body[name], value) for name, value in more.items() if isinstance(body.get(name), dict) and isinstance(value, dict)
    }
    return body | dict(more) | both


def dig_value(value: Any, *path: str | int) -> Any:
    """Return the value at a path of keys and indexes in a server's JSON, None if it is missing."""
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and len(value) > step else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def _window(name: str) -> int | None:
    """Return the tokens of a model's window, if genai-prices knows them."""
    from genai_prices.data_snapshot import get_snapshot

    provider, _, model = name.partition("/")
    try:
        return get_snapshot().find_provider_model(model, None, provider, None)[1].context_window
    except LookupError:
        return None
