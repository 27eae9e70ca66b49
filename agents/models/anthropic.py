"""Chat models behind Anthropic's messages API, or a server that speaks it (`base_url`)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, final

from pydantic import Field, model_validator

from longspan.agents.base import Usage
from longspan.agents.models.api import ApiCore, ApiOptions, ServerAnswer, dig_value, merge_body, parse_events, parse_usage
from longspan.agents.models.api_agent import ApiAgent
from longspan.agents.models.chat import ChatOptions
from longspan.agents.models.core import ChatMessage
from longspan.agents.models.provider import Vendor
from longspan.agents.models.request import Request
from longspan.agents.models.web import stream_error

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

__all__ = ["ANTHROPIC", "AnthropicAgent", "AnthropicCore", "cache_breakpoints"]

MAX_BREAKPOINTS: Final = 4
"""The maximum cache marks in a request."""

MIN_THINKING: Final = 1024
"""The minimum tokens of a thinking budget."""

LOOKBACK: Final = 20
"""Blocks before a mark that the API searches for in its cache."""

CACHE_MARK: Final = {"cache_control": {"type": "ephemeral"}}


def _client(key: str, url: str, http: Any) -> AsyncAnthropic:
    from anthropic import AsyncAnthropic

    return AsyncAnthropic(api_key=key, base_url=url, http_client=http, max_retries=0, timeout=http.timeout, open_telemetry=False)


ANTHROPIC = Vendor(
    kind="anthropic",
    extra="anthropic",
    module="anthropic",
    keys=("ANTHROPIC_API_KEY",),
    url="https://api.anthropic.com",
    url_variable="ANTHROPIC_BASE_URL",
    make=_client,
)


@final
class AnthropicCore(ApiCore):
    """A chat model behind Anthropic's API."""

    vendor: ClassVar[Vendor] = ANTHROPIC

    class Options(ApiOptions):
        """The options of a model behind Anthropic's API."""

        thinking_budget: int | None = Field(default=None, ge=0, le=1_000_000)
        """The most tokens of thinking, from 1024 to less than `max_tokens`; 0 for none."""

        @model_validator(mode="after")
        def _thinking_fits(self) -> Self:
            budget = self.thinking_budget
            if budget and not MIN_THINKING <= budget < self.max_tokens:
                raise ValueError(f"thinking_budget={budget}: expected 0, or {MIN_THINKING:,} to less than max_tokens={self.max_tokens}")
            return self

    async def ask(self, client: AsyncAnthropic, request: Request) -> ServerAnswer:
        stream = self.options.stream
        create: Any = client.messages.with_streaming_response.create
        # Trio requires async generators to be closed, which the library's streams are not. So read the raw answer.
        # The library lacks parameters for some fields, so all but those that it requires go into extra_body.
        fields = self.body(request)
        required = {name: fields.pop(name) for name in ("model", "max_tokens", "messages")}
        async with create(stream=stream, **required, extra_body=fields) as response:
            body = await response.read()
        answer, counts = ServerAnswer(), dict[str, int]()
        for event in parse_events(body):
            self._read(event, answer, counts)
        answer.usage = _usage(counts)
        return answer

    def body(self, request: Request) -> dict[str, Any]:
        messages = _messages(request.messages)
        marked = cache_breakpoints(len(messages), MAX_BREAKPOINTS - bool(request.system))
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": request.max_tokens,
            "messages": [_mark_for_cache(message) if n in marked else message for n, message in enumerate(messages)],
        }
        if request.system:
            body["system"] = [{"type": "text", "text": request.system} | (CACHE_MARK if marked else {})]
        options = self.options
        assert isinstance(options, self.Options)  # noqa: S101
        output: dict[str, Any] = {}
        if options.reasoning_effort is not None:
            output["effort"] = options.reasoning_effort
        if request.tools:
            body["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in request.tools
            ]
            body["tool_choice"] = {"type": "auto" if request.may_call else "none"}
        if request.schema is not None:
            output["format"] = {"type": "json_schema", "schema": request.schema}
        if output:
            body["output_config"] = output
        if options.thinking_budget is not None:
            enabled = {"type": "enabled", "budget_tokens": options.thinking_budget}
            body["thinking"] = enabled if options.thinking_budget else {"type": "disabled"}
        sampling = {"temperature": options.temperature, "top_p": options.top_p}
        body |= {name: value for name, value in sampling.items() if value is not None}
        return request.trim(merge_body(body, options.extra_body))

    def _read(self, event: Any, answer: ServerAnswer, counts: dict[str, int]) -> None:
        """Add the contents of an answer or of one of its events."""
        match dig_value(event, "type"):
            case "message_start":
                counts |= _counts(dig_value(event, "message", "usage"))
            case "content_block_delta" if dig_value(event, "delta", "type") == "text_delta":
                answer.add(dig_value(event, "delta", "text"))
            case "content_block_delta":
                answer.think(dig_value(event, "delta", "thinking"))
            case "message_delta":
                counts |= _counts(dig_value(event, "usage"))
                self._finish(dig_value(event, "delta", "stop_reason"), answer)
            case "message":
                for block in dig_value(event, "content") or ():
                    if dig_value(block, "type") == "text":
                        answer.add(dig_value(block, "text"))
                    answer.think(dig_value(block, "thinking"))
                    if dig_value(block, "type") == "tool_use":
                        answer.add_call(dig_value(block, "id"), dig_value(block, "name"), dig_value(block, "input"))
                        answer.raw = dig_value(event, "content")
                counts |= _counts(dig_value(event, "usage"))
                self._finish(dig_value(event, "stop_reason"), answer)
            case "error":
                raise stream_error(event)

    def _finish(self, reason: object, answer: ServerAnswer) -> None:
        if reason == "refusal":
            answer.refuse("the model refused")
        answer.called |= reason == "tool_use"
        answer.done |= reason is not None
        answer.truncated |= reason in ("max_tokens", "model_context_window_exceeded")


@final
class AnthropicAgent(ApiAgent):
    """An agent that is a chat model behind Anthropic's API."""

    core_class = AnthropicCore

    class Options(AnthropicCore.Options, ChatOptions):
        """The options of the agent and the model."""


def cache_breakpoints(messages: int, limit: int) -> set[int]:
    """Return the indexes of at most `limit` messages to mark for the cache; none at the start of a conversation.

    The API caches the prompt up to each mark. It reads up to an earlier mark within 20 blocks before a new one. The last message is marked,
    since the next prompt starts with it. The one before it is marked in case the last one changes before it is sent again. Further marks
    follow every 20 messages, for turns observed since the last request.
    """
    if messages < 3:
        return set()
    earlier = range(messages - 2, -1, -LOOKBACK)
    return {messages - 1, *list(earlier)[: limit - 1]}


def _messages(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """Convert messages to the API's format. It rejects empty ones, and takes the results of parallel tool calls in one message."""
    found: list[dict[str, Any]] = []
    for answers, group in groupby(messages, key=lambda message: message.role == "tool"):
        if answers:
            found.append({"role": "user", "content": [_result(message) for message in group]})
        else:
            found += [{"role": each.role, "content": each.raw or each.text} for each in group if each.raw or each.text.strip()]
    return found


def _result(message: ChatMessage) -> dict[str, Any]:
    assert message.call is not None  # noqa: S101
    return {"type": "tool_result", "tool_use_id": message.call.id, "content": message.text}


def _mark_for_cache(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    *others, last = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return message | {"content": [*others, last | CACHE_MARK]}


def _counts(usage: Any) -> dict[str, int]:
    """Return an event's counts. Counts in later events replace earlier ones."""
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    return {name: dig_value(usage, name) for name in names if isinstance(dig_value(usage, name), int)}


def _usage(counts: dict[str, int]) -> Usage | None:
    """Return the usage. Anthropic's input tokens exclude tokens written to or read from the cache."""
    if "input_tokens" not in counts:
        return None
    written, read = counts.get("cache_creation_input_tokens", 0), counts.get("cache_read_input_tokens", 0)
    return parse_usage(inputs=counts["input_tokens"] + written + read, cached=read, output=counts.get("output_tokens"))
