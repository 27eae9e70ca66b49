"""What chat models behind vendors' APIs have in common."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Annotated, Any, ClassVar, Final

from pydantic import BeforeValidator, Field

from longspan.agents.base import AgentError, Tokens, Usage
from longspan.agents.models.core import ChatMessage, Completion, clean
from longspan.agents.models.limits import TransientError
from longspan.agents.models.provider import Provider, ProviderOptions, Vendor
from longspan.simulator.tokens import EncodingName, Tokenizer

__all__ = ["Answer", "ApiCore", "ApiOptions", "Request", "dig", "events", "used"]

FOREIGN: Final = 1.2
"""Tokens that a model whose tokenizer is not at hand is taken to have for each of ours. Current tokenizers lie between 0.9 and
1.4 of o200k on English text; what the provider reports then corrects the windows."""

MOST_USED: Final = 10**9
"""Tokens above which a provider's count is no count."""

Temperature = Annotated[float | None, BeforeValidator(lambda value: None if value == "none" else value)]


class ApiOptions(ProviderOptions):
    """`max_tokens`: of an answer, thinking included; `temperature`: "none" leaves it to the provider, as some models demand; `top_p`:
    only the likeliest tokens that together have this probability are drawn from;
    `stream`: take the answer piece by piece, for servers that close connections on which nothing comes for long."""

    max_tokens: Tokens = 4096
    temperature: Annotated[Temperature, Field(ge=0, le=2)] = None
    top_p: float | None = Field(default=None, gt=0, le=1, allow_inf_nan=False)
    stream: bool = False


class Request:
    """What a model is asked: an optional system message, the conversation, the longest answer, and a JSON schema for it."""

    def __init__(self, messages: Sequence[ChatMessage], most: int, schema: Mapping[str, Any] | None) -> None:
        self.system = "\n\n".join(message.text for message in messages if message.role == "system")
        self.messages = [message for message in messages if message.role != "system"]
        self.most = most
        self.schema = dict(schema) if schema is not None else None

    @property
    def tokens(self) -> int:
        """About how many tokens question and answer have, at four characters a token."""
        return (len(self.system) + sum(len(message.text) for message in self.messages)) // 4 + self.most


class Answer:
    """An answer as it comes, whole or in pieces. `done` once the provider has said that it is whole, `cut` where it ended at
    its longest."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.usage: Usage | None = None
        self.done = False
        self.cut = False

    def add(self, text: object) -> None:
        """Take a piece of text. Raises TransientError for what is none."""
        if not isinstance(text, str):
            raise TransientError(f"gave an answer that cannot be read: {type(text).__name__} where text was due")
        self.pieces.append(text)


class ApiCore(ABC):
    """A chat model behind a vendor's API. Calls may overlap.

    Raises InputError where the vendor's library, the key or the model's name is missing.
    """

    vendor: ClassVar[Vendor]
    overhead = 4

    def __init__(self, target: str, options: ApiOptions) -> None:
        self.options = options
        self.model = target
        self.provider = Provider(self.vendor, target, options)
        self.name = self.provider.name
        self.window = _window(self.name) if self.provider.own else None
        self.most_output = options.max_tokens
        encoding, self._factor = self.encoding()
        self._tokenizer = Tokenizer(encoding)

    def encoding(self) -> tuple[EncodingName, float]:
        """What its tokens are counted in, and how many it has for each of those."""
        return "o200k_base", FOREIGN

    def count(self, text: str) -> int:
        """Tokens of a text, by the model's own tokenizer where it is at hand and else by estimate."""
        return ceil(self._tokenizer.count(text) * self._factor)

    async def complete(
        self, messages: Sequence[ChatMessage], *, most: int | None = None, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        request = Request(messages, most or self.most_output, schema)

        async def send(client: Any) -> tuple[str, Usage]:
            answer = await self.ask(client, request)
            return self._whole(answer, request), answer.usage or self._guessed(request, answer)

        text, usage = await self.provider.call(send, tokens=request.tokens)
        return Completion(text, usage)

    @abstractmethod
    async def ask(self, client: Any, request: Request) -> Answer:
        """The answer of the vendor's API. What it raises is explained by whoever calls it."""

    def _whole(self, answer: Answer, request: Request) -> str:
        """The text of an answer. Raises TransientError where it broke off, AgentError where all of it was thinking."""
        if not answer.done:
            raise TransientError("broke off its answer before the end")
        text = self.provider.scrubbed(clean("".join(answer.pieces)))
        if answer.cut and not text:
            raise AgentError(f"all {request.most:,} tokens of its answer went into thinking: take a larger max_tokens=")
        return text

    def _guessed(self, request: Request, answer: Answer) -> Usage:
        """What an answer used, by our own count: the provider did not say."""
        asked = [request.system, *(message.text for message in request.messages)]
        return Usage(sum(self.count(text) + self.overhead for text in asked if text), 0, self.count("".join(answer.pieces)))


def used(*, inputs: object, cached: object, output: object) -> Usage | None:
    """A provider's counts as a Usage; None where it gives none that can be."""
    if not isinstance(inputs, int) or not isinstance(output, int) or not 0 < inputs <= MOST_USED or not 0 <= output <= MOST_USED:
        return None
    return Usage(inputs, min(cached, inputs) if isinstance(cached, int) and cached > 0 else 0, output)


def events(body: bytes, stream: bool) -> list[Any]:
    """The JSON in an answer's body: one value, or with `stream` that of each server-sent event. Raises ValueError."""
    if not stream:
        return [json.loads(body)]
    found = []
    for event in body.replace(b"\r\n", b"\n").split(b"\n\n"):
        data = b"\n".join(line[5:].lstrip() for line in event.split(b"\n") if line.startswith(b"data:"))
        if data and data != b"[DONE]":
            found.append(json.loads(data))
    return found


def dig(value: Any, *path: str | int) -> Any:
    """What lies at a path of keys and places in JSON from a server; None where there is nothing."""
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and len(value) > step else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def _window(name: str) -> int | None:
    """Tokens that a model takes, as far as genai-prices knows."""
    from genai_prices.data_snapshot import get_snapshot

    provider, _, model = name.partition("/")
    try:
        return get_snapshot().find_provider_model(model, None, provider, None)[1].context_window
    except LookupError:
        return None
