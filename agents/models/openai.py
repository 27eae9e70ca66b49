"""openai: chat models behind OpenAI's chat completions, or any server that speaks them (`base_url`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self, final

from pydantic import Field, model_validator

from longspan.agents.base import AgentError, AgentOptions
from longspan.agents.models.api import Answer, ApiCore, ApiOptions, Request, dig, events, used
from longspan.agents.models.chat import ChatAgent, ChatOptions
from longspan.agents.models.provider import Vendor
from longspan.agents.models.web import broken_off
from longspan.simulator.tokens import EncodingName

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["OPENAI", "OpenAIAgent", "OpenAICore"]


def _client(key: str, url: str, http: Any) -> AsyncOpenAI:
    from openai import AsyncOpenAI

    return AsyncOpenAI(api_key=key, base_url=url, http_client=http, max_retries=0, timeout=http.timeout)


OPENAI = Vendor(kind="openai", extra="openai", module="openai", keys=("OPENAI_API_KEY",), url="https://api.openai.com/v1", make=_client)


@final
class OpenAICore(ApiCore):
    """A chat model behind OpenAI's API, or one that speaks as it does."""

    vendor: ClassVar[Vendor] = OPENAI

    class Options(ApiOptions):
        """`seed`: what is drawn with, as far as the server keeps to it; `repetition_penalty`: of tokens that are there already, for
        servers that know it, which OpenAI's own does not."""

        seed: int | None = Field(default=None, ge=0, lt=2**63)
        repetition_penalty: float | None = Field(default=None, gt=0, le=10, allow_inf_nan=False)

        @model_validator(mode="after")
        def _known(self) -> Self:
            if self.repetition_penalty is not None and self.base_url is None:
                raise ValueError("repetition_penalty is nothing that OpenAI's own models know: it is for servers with a base_url")
            return self

    def encoding(self) -> tuple[EncodingName, float]:
        from tiktoken import encoding_name_for_model

        try:
            name = encoding_name_for_model(self.model)
        except KeyError:
            return super().encoding()
        return ("cl100k_base" if name == "cl100k_base" else "o200k_base"), 1.0

    async def ask(self, client: AsyncOpenAI, request: Request) -> Answer:
        stream = self.options.stream
        create: Any = client.chat.completions.with_streaming_response.create
        # The library checks messages that it is given as such one by one, which takes longer than all else; and its streams
        # do not end as Trio wants generators to end. So it gets the body as it is, and gives the answer as it is.
        async with create(model=self.model, messages=[], stream=stream, extra_body=self._body(request)) as response:
            body = await response.read()
        answer = Answer()
        for event in events(body, stream):
            self._read(event, answer, "delta" if stream else "message")
        return answer

    def _body(self, request: Request) -> dict[str, Any]:
        system = [{"role": "system", "content": request.system}] if request.system else []
        body: dict[str, Any] = {
            "messages": system + [{"role": role, "content": text} for role, text in request.messages],
            # OpenAI's newer models refuse the name that other servers know.
            "max_completion_tokens" if self.provider.own else "max_tokens": request.most,
        }
        options = self.options
        assert isinstance(options, self.Options)  # noqa: S101  # of its own kind
        drawn = {"temperature": options.temperature, "top_p": options.top_p, "seed": options.seed}
        # vLLM calls it the one, llama.cpp the other; each passes over what it does not know.
        drawn |= {"repetition_penalty": options.repetition_penalty, "repeat_penalty": options.repetition_penalty}
        body |= {name: value for name, value in drawn.items() if value is not None}
        if self.options.stream:
            body["stream_options"] = {"include_usage": True}
        if request.schema is not None:
            strict = request.schema.get("additionalProperties") is False
            schema = {"name": "answer", "schema": request.schema, "strict": strict}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return body

    def _read(self, event: Any, answer: Answer, where: str) -> None:
        """Take over what an answer, or a piece of one, holds."""
        if dig(event, "error"):
            raise broken_off(event)
        if usage := dig(event, "usage"):
            cached = dig(usage, "prompt_tokens_details", "cached_tokens")
            answer.usage = used(inputs=dig(usage, "prompt_tokens"), cached=cached, output=dig(usage, "completion_tokens"))
        if where == "delta" and not dig(event, "choices"):
            return  # the piece with the usage
        message, reason = dig(event, "choices", 0, where), dig(event, "choices", 0, "finish_reason")
        refusal = dig(message, "refusal")
        if refusal or reason == "content_filter":
            raise AgentError(f"refuses to answer: {refusal or 'its content filter'!s:.300}")
        answer.done |= where == "message" or reason is not None
        answer.cut |= reason == "length"
        content = dig(message, "content")
        if content is not None or (where == "message" and not answer.cut):
            answer.add(content)


@final
class OpenAIAgent(ChatAgent):
    """A chat model of OpenAI's kind as an agent."""

    class Options(OpenAICore.Options, ChatOptions):
        """The agent's and the model's."""

    def __init__(self, target: str, options: AgentOptions | None = None) -> None:
        settings = options if isinstance(options, self.Options) else self.Options()
        super().__init__(OpenAICore(target, settings), settings, target)
