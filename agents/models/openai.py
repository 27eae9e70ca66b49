"""Chat models behind OpenAI's chat completions API, or any server that speaks it (`base_url`)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from longspan.agents.base import AgentOptions, InputError
from longspan.agents.models.api import ApiCore, ApiOptions, ServerAnswer, dig_value, is_stream, merge_body, parse_events, parse_usage
from longspan.agents.models.api_agent import ApiAgent
from longspan.agents.models.chat import ChatOptions
from longspan.agents.models.core import ChatMessage
from longspan.agents.models.provider import Vendor
from longspan.agents.models.request import Request
from longspan.agents.models.stateful import SessionAgent, SessionOptions
from longspan.agents.models.web import stream_error
from longspan.simulator.base.tokens import EncodingName

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["OPENAI", "OpenAIAgent", "OpenAICore", "find_encoding"]


def _client(key: str, url: str, http: Any) -> AsyncOpenAI:
    from openai import AsyncOpenAI

    return AsyncOpenAI(api_key=key, base_url=url, http_client=http, max_retries=0, timeout=http.timeout)


OPENAI = Vendor(
    kind="openai",
    extra="openai",
    module="openai",
    keys=("OPENAI_API_KEY",),
    url="https://api.openai.com/v1",
    url_variable="OPENAI_BASE_URL",
    make=_client,
)


def find_encoding(model: str) -> tuple[EncodingName, float] | None:
    """Return the encoding of a model of OpenAI's, and the model's tokens per token of it; None for other models."""
    from tiktoken import encoding_name_for_model

    try:
        name = encoding_name_for_model(model)
    except KeyError:
        return None
    return ("cl100k_base" if name == "cl100k_base" else "o200k_base"), 1.0


class OpenAICore(ApiCore):
    """A chat model behind OpenAI's API or a compatible one."""

    vendor: ClassVar[Vendor] = OPENAI

    class Options(ApiOptions):
        """The options of a model behind OpenAI's API or a compatible one."""

        seed: int | None = Field(default=None, ge=0, lt=2**63)
        """The seed for sampling, if the server respects it."""
        repetition_penalty: float | None = Field(default=None, gt=0, le=10, allow_inf_nan=False)
        """Above 1, tokens that already occur become less likely. OpenAI's own models do not support it."""

    def __init__(self, target: str, options: ApiOptions) -> None:
        address = options.base_url or self.vendor.address()
        self._is_openai = self.vendor.kind == OPENAI.kind and address.rstrip("/") == self.vendor.url
        if self._is_openai and getattr(options, "repetition_penalty", None) is not None:
            raise InputError(f"openai/{target}: OpenAI's own models do not support repetition_penalty: it is for other servers")
        super().__init__(target, options)

    def encoding(self) -> tuple[EncodingName, float]:
        return find_encoding(self.model) or super().encoding()

    async def ask(self, client: AsyncOpenAI, request: Request) -> ServerAnswer:
        fields = self.body(request)
        stream = fields.pop("stream", False)
        create: Any = client.chat.completions.with_streaming_response.create
        # Pass the finished body and read the raw answer: the library validates messages one by one, which takes longer than everything
        # else, and its streams are not closed as Trio requires of async generators.
        async with create(model=self.model, messages=[], stream=stream, extra_body=fields, extra_headers=request.state.headers) as response:
            body = await response.read()
        answer = ServerAnswer()
        for event in parse_events(body):
            self.read_event(event, answer, "delta" if is_stream(body) else "message")
        return answer

    def body(self, request: Request) -> dict[str, Any]:
        system = [{"role": "system", "content": request.system}] if request.system else []
        body: dict[str, Any] = {
            "messages": system + [_message(message) for message in request.messages],
            # OpenAI's newer models reject the name that other servers use.
            "max_completion_tokens" if self._is_openai != request.other_limit else "max_tokens": request.max_tokens,
        }
        options = self.options
        assert isinstance(options, self.Options)  # noqa: S101
        sampling = {"temperature": options.temperature, "top_p": options.top_p, "seed": options.seed}
        # vLLM's name comes first, then llama.cpp's. Each ignores the other.
        sampling |= {"repetition_penalty": options.repetition_penalty, "repeat_penalty": options.repetition_penalty}
        body |= {name: value for name, value in sampling.items() if value is not None}
        if options.reasoning_effort is not None:
            body["reasoning_effort"] = options.reasoning_effort
        if self.options.stream != request.other_stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        if request.tools:
            functions = [{"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in request.tools]
            body["tools"] = [{"type": "function", "function": function} for function in functions]
            body["tool_choice"] = "auto" if request.may_call else "none"
        if request.schema is not None:
            strict = request.schema.get("additionalProperties") is False
            schema = {"name": "answer", "schema": request.schema, "strict": strict}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif request.json_object:
            body["response_format"] = {"type": "json_object"}
        return merge_body(request.trim(merge_body(body, options.extra_body)), request.state.fields)

    def read_event(self, event: Any, answer: ServerAnswer, key: str) -> None:
        """Add the contents of an answer or of a piece of one. Its message is under `key`."""
        if dig_value(event, "error"):
            raise stream_error(event)
        if usage := dig_value(event, "usage"):
            cached = dig_value(usage, "prompt_tokens_details", "cached_tokens")
            answer.usage = parse_usage(
                inputs=dig_value(usage, "prompt_tokens"), cached=cached, output=dig_value(usage, "completion_tokens")
            )
        choice = dig_value(event, "choices", 0)
        if choice is None and key == "delta":
            return  # the piece with the usage
        message, reason = dig_value(choice, key), dig_value(choice, "finish_reason")
        answer.done |= key == "message" or reason is not None
        answer.truncated |= reason == "length"
        content, refusal = dig_value(message, "content"), dig_value(message, "refusal")
        if reason == "content_filter":
            answer.refuse("content filter")
        if refusal:
            answer.refuse("the model refused")
            answer.add(refusal)
        # vLLM's and DeepSeek's name, and OpenRouter's.
        answer.think(dig_value(message, "reasoning_content") or dig_value(message, "reasoning"))
        answer.called |= dig_value(message, "tool_calls", 0) is not None or dig_value(message, "function_call") is not None
        for call in (dig_value(message, "tool_calls") or ()) if key == "message" else ():
            answer.add_call(dig_value(call, "id"), dig_value(call, "function", "name"), dig_value(call, "function", "arguments"))
            answer.raw = {name: value for name, value in message.items() if value is not None}
        if content is not None or (key == "message" and not (answer.truncated or answer.refusal or answer.called or answer.thoughts)):
            answer.add_content(content)


def _message(message: ChatMessage) -> dict[str, Any]:
    if message.raw is not None:
        return dict(message.raw)
    answers = {"tool_call_id": message.call.id} if message.call is not None else {}
    return {"role": message.role, "content": message.text} | answers


class OpenAIAgent(ApiAgent):
    """An agent that is a chat model behind OpenAI's API or a compatible one."""

    core_class = OpenAICore

    class Options(OpenAICore.Options, ChatOptions, SessionOptions):
        """The options of the agent and the model."""

    @classmethod
    def make(cls, target: str, options: AgentOptions) -> ApiAgent:
        """Create an agent, whose server keeps the conversation if the options say so."""
        kept = isinstance(options, cls.Options) and options.history == "server"
        return _make_session_class(cls)(target, options) if kept else cls(target, options)


@cache
def _make_session_class(kind: type[OpenAIAgent]) -> type[SessionAgent]:
    """Return the class of a kind's agents whose server keeps the conversation."""
    return type(f"{kind.__name__}Session", (SessionAgent,), {"core_class": kind.core_class, "Options": kind.Options})
