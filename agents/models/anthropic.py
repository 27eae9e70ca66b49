"""anthropic: chat models behind Anthropic's messages API, or a server that speaks it (`base_url`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, final

from longspan.agents.base import AgentError, AgentOptions, Usage
from longspan.agents.models.api import Answer, ApiCore, ApiOptions, Request, dig, events, used
from longspan.agents.models.chat import ChatAgent, ChatOptions
from longspan.agents.models.core import ChatMessage
from longspan.agents.models.provider import Vendor
from longspan.agents.models.web import broken_off

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

__all__ = ["ANTHROPIC", "AnthropicAgent", "AnthropicCore", "breakpoints"]

BREAKPOINTS: Final = 4
"""How many places a request may mark for the cache."""

LOOKBACK: Final = 20
"""How many blocks before a mark are looked for in the cache."""

MARK: Final = {"cache_control": {"type": "ephemeral"}}


def _client(key: str, url: str, http: Any) -> AsyncAnthropic:
    from anthropic import AsyncAnthropic

    return AsyncAnthropic(api_key=key, base_url=url, http_client=http, max_retries=0, timeout=http.timeout, open_telemetry=False)


ANTHROPIC = Vendor(
    kind="anthropic", extra="anthropic", module="anthropic", keys=("ANTHROPIC_API_KEY",), url="https://api.anthropic.com", make=_client
)


@final
class AnthropicCore(ApiCore):
    """A chat model behind Anthropic's API."""

    vendor: ClassVar[Vendor] = ANTHROPIC

    class Options(ApiOptions):
        """Its options."""

    async def ask(self, client: AsyncAnthropic, request: Request) -> Answer:
        stream = self.options.stream
        create: Any = client.messages.with_streaming_response.create
        # The library's streams do not end as Trio wants generators to end, so it gives the answer as it is.
        async with create(stream=stream, **self._body(request)) as response:
            body = await response.read()
        answer, counted = Answer(), dict[str, int]()
        for event in events(body, stream):
            self._read(event, answer, counted)
        answer.usage = _usage(counted)
        return answer

    def _body(self, request: Request) -> dict[str, Any]:
        spoken = [message for message in request.messages if message.text.strip()]  # the API takes no empty ones
        marked = breakpoints(len(spoken), BREAKPOINTS - bool(request.system))
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": request.most,
            "messages": [_marked(message) if n in marked else _plain(message) for n, message in enumerate(spoken)],
        }
        if request.system:
            body["system"] = [{"type": "text", "text": request.system} | (MARK if marked else {})]
        if request.schema is not None:
            body["output_config"] = {"format": {"type": "json_schema", "schema": request.schema}}
        if self.options.temperature is not None:
            body["extra_body"] = {"temperature": self.options.temperature}  # the library no longer knows it
        if self.options.top_p is not None:
            body["extra_body"] = body.get("extra_body", {}) | {"top_p": self.options.top_p}
        return body

    def _read(self, event: Any, answer: Answer, counted: dict[str, int]) -> None:
        """Take over what an answer, or an event of one, holds."""
        match dig(event, "type"):
            case "message_start":
                counted |= _counts(dig(event, "message", "usage"))
            case "content_block_delta" if dig(event, "delta", "type") == "text_delta":
                answer.add(dig(event, "delta", "text"))
            case "message_delta":
                counted |= _counts(dig(event, "usage"))
                self._ends(dig(event, "delta", "stop_reason"), answer)
            case "message":
                for block in dig(event, "content") or ():
                    if dig(block, "type") == "text":
                        answer.add(dig(block, "text"))
                counted |= _counts(dig(event, "usage"))
                self._ends(dig(event, "stop_reason"), answer)
            case "error":
                raise broken_off(event)

    def _ends(self, reason: object, answer: Answer) -> None:
        if reason == "refusal":
            raise AgentError("refuses to answer")
        answer.done |= reason is not None
        answer.cut |= reason in ("max_tokens", "model_context_window_exceeded")


@final
class AnthropicAgent(ChatAgent):
    """A chat model of Anthropic's as an agent."""

    class Options(AnthropicCore.Options, ChatOptions):
        """The agent's and the model's."""

    def __init__(self, target: str, options: AgentOptions | None = None) -> None:
        settings = options if isinstance(options, self.Options) else self.Options()
        super().__init__(AnthropicCore(target, settings), settings, target)


def breakpoints(messages: int, most: int) -> set[int]:
    """Which of so many messages to mark for the cache, at most `most` of them; none where there is no conversation yet.

    What ends at a mark is written to the cache; what is read ends at one of the 20 blocks before a mark, at a place that was
    marked earlier. So the last message is marked, for the next prompt to begin with; the one before it, in case the last one
    is never sent again as it is; and further ones at a distance of 20, for the turns told of since the last request.
    """
    if messages < 3:
        return set()
    before = range(messages - 2, -1, -LOOKBACK)
    return {messages - 1, *list(before)[: most - 1]}


def _plain(message: ChatMessage) -> dict[str, Any]:
    return {"role": message.role, "content": message.text}


def _marked(message: ChatMessage) -> dict[str, Any]:
    return {"role": message.role, "content": [{"type": "text", "text": message.text} | MARK]}


def _counts(usage: Any) -> dict[str, int]:
    """The counts that are there. Later events of an answer have some of them, and those replace earlier ones."""
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    return {name: dig(usage, name) for name in names if isinstance(dig(usage, name), int)}


def _usage(counts: dict[str, int]) -> Usage | None:
    """A Usage: Anthropic's input tokens are those that were neither written to the cache nor read from it."""
    if "input_tokens" not in counts:
        return None
    written, read = counts.get("cache_creation_input_tokens", 0), counts.get("cache_read_input_tokens", 0)
    return used(inputs=counts["input_tokens"] + written + read, cached=read, output=counts.get("output_tokens"))
