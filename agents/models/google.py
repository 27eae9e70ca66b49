"""Gemini models behind Google's API, or a server that speaks it (`base_url`)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, final

from pydantic import Field, model_validator

from longspan.agents.models.api import ApiCore, ApiOptions, ServerAnswer, merge_body, parse_usage
from longspan.agents.models.api_agent import ApiAgent
from longspan.agents.models.chat import ChatOptions
from longspan.agents.models.core import ChatMessage
from longspan.agents.models.provider import Vendor
from longspan.agents.models.request import Request

if TYPE_CHECKING:
    from google.genai import Client
    from google.genai.types import GenerateContentResponse

__all__ = ["GOOGLE", "GoogleAgent", "GoogleCore"]

REFUSALS: Final = ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY")
"""Finish reasons of a refused answer."""

TOOL_CALLS: Final = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS")
"""Finish reasons of an answer that called an unknown tool or could not write the call."""


def _client(key: str, url: str, http: Any) -> Client:
    from google.genai import Client, types

    # Without our HTTP client, the library uses asyncio, which does not run under Trio.
    options = types.HttpOptions(base_url=url, httpx_async_client=http)
    return Client(vertexai=False, api_key=key, http_options=options)


GOOGLE = Vendor(
    kind="google",
    extra="google",
    module="google.genai",
    keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    url="https://generativelanguage.googleapis.com",
    url_variable="GOOGLE_GEMINI_BASE_URL",
    make=_client,
)


class _SharedJson(dict[str, Any]):
    """JSON that is never modified, so deep copies by the library can share it."""

    def __deepcopy__(self, memo: object) -> _SharedJson:
        return self


@final
class GoogleCore(ApiCore):
    """A Gemini model behind Google's API."""

    vendor: ClassVar[Vendor] = GOOGLE

    class Options(ApiOptions):
        """The options of a Gemini model."""

        thinking_budget: int | None = Field(default=None, ge=-1, le=1_000_000)
        """The most tokens of thinking; 0 for none, -1 for as many as the model likes. Not together with `reasoning_effort`."""

        @model_validator(mode="after")
        def _one_of_two(self) -> Self:
            if self.thinking_budget is not None and self.reasoning_effort is not None:
                raise ValueError("Google's models take thinking_budget or reasoning_effort, not both")
            return self

    async def ask(self, client: Client, request: Request) -> ServerAnswer:
        # Pass the raw body: the library's conversion of contents to its types and back takes longer than everything else.
        options: Any = {"model": self.model, "contents": ".", "config": {"http_options": {"extra_body": self.body(request)}}}
        if self.options.stream:
            # Read it to the end first: Trio requires async generators to finish.
            events = [event async for event in await client.aio.models.generate_content_stream(**options)]
        else:
            events = [await client.aio.models.generate_content(**options)]
        answer = ServerAnswer()
        for event in events:
            self._read(event, answer)
        return answer

    def body(self, request: Request) -> dict[str, Any]:
        settings: dict[str, Any] = {"maxOutputTokens": request.max_tokens}
        if self.options.temperature is not None:
            settings["temperature"] = self.options.temperature
        if self.options.top_p is not None:
            settings["topP"] = self.options.top_p
        options = self.options
        assert isinstance(options, self.Options)  # noqa: S101
        if options.reasoning_effort is not None:
            settings["thinkingConfig"] = {"thinkingLevel": options.reasoning_effort.upper()}
        if options.thinking_budget is not None:
            settings["thinkingConfig"] = {"thinkingBudget": options.thinking_budget}
        if request.schema is not None:
            settings |= {"responseMimeType": "application/json", "responseJsonSchema": request.schema}
        elif request.json_object:
            settings["responseMimeType"] = "application/json"
        body: dict[str, Any] = {
            "contents": _contents(request.messages),
            "generationConfig": settings,
        }
        if request.tools:
            functions = [
                {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters} for tool in request.tools
            ]
            body["tools"] = [{"functionDeclarations": functions}]
            body["toolConfig"] = {"functionCallingConfig": {"mode": "AUTO" if request.may_call else "NONE"}}
        if request.system:
            body["systemInstruction"] = {"parts": [{"text": request.system}]}
        return request.trim(merge_body(body, options.extra_body))

    def _read(self, event: GenerateContentResponse, answer: ServerAnswer) -> None:
        """Add the contents of an answer or of a piece of one."""
        if (usage := event.usage_metadata) is not None:
            output = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
            answer.usage = parse_usage(inputs=usage.prompt_token_count, cached=usage.cached_content_token_count, output=output)
        if event.prompt_feedback is not None and event.prompt_feedback.block_reason:
            answer.refuse(f"prompt blocked, {event.prompt_feedback.block_reason.value}")
            answer.done = True
        for candidate in (event.candidates or ())[:1]:
            reason = candidate.finish_reason.value if candidate.finish_reason else None
            if reason in REFUSALS:
                answer.refuse(reason)
            answer.called |= reason in TOOL_CALLS
            for piece in (candidate.content.parts if candidate.content else None) or ():
                if piece.function_call is not None:
                    answer.add_call(piece.function_call.id or "", piece.function_call.name, piece.function_call.args or {})
                if piece.text:
                    (answer.think if piece.thought else answer.add)(piece.text)
            if answer.calls and candidate.content is not None:
                answer.raw = candidate.content.model_dump(mode="json", by_alias=True, exclude_none=True)
            answer.done |= reason is not None
            answer.truncated |= reason == "MAX_TOKENS"


def _contents(messages: Sequence[ChatMessage]) -> list[_SharedJson]:
    """Convert messages to the API's format. It rejects empty ones, and takes the results of parallel tool calls in one message."""
    found: list[_SharedJson] = []
    for answers, group in groupby(messages, key=lambda message: message.role == "tool"):
        if answers:
            found.append(_SharedJson(role="user", parts=[_result(message) for message in group]))
        else:
            found += [_content(message) for message in group if message.raw or message.text]
    return found


def _content(message: ChatMessage) -> _SharedJson:
    if message.raw is not None:
        return _SharedJson(message.raw)
    return _SharedJson(role="user" if message.role == "user" else "model", parts=[{"text": message.text}])


def _result(message: ChatMessage) -> dict[str, Any]:
    assert message.call is not None  # noqa: S101
    id = {"id": message.call.id} if message.call.id else {}
    return {"functionResponse": {"name": message.call.name, "response": {"result": message.text}} | id}


@final
class GoogleAgent(ApiAgent):
    """An agent that is a Gemini model."""

    core_class = GoogleCore

    class Options(GoogleCore.Options, ChatOptions):
        """The options of the agent and the model."""
