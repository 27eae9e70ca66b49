"""google: Gemini models behind Google's API, or a server that speaks it (`base_url`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, final

from longspan.agents.base import AgentError, AgentOptions
from longspan.agents.models.api import Answer, ApiCore, ApiOptions, Request, used
from longspan.agents.models.chat import ChatAgent, ChatOptions
from longspan.agents.models.provider import Vendor

if TYPE_CHECKING:
    from google.genai import Client
    from google.genai.types import GenerateContentResponse

__all__ = ["GOOGLE", "GoogleAgent", "GoogleCore"]

REFUSALS: Final = ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE")
"""Why Google's models end an answer that they refuse to give."""


def _client(key: str, url: str, http: Any) -> Client:
    from google.genai import Client, types

    # Without a client given to it the library uses asyncio, which does not run under Trio.
    options = types.HttpOptions(base_url=url, httpx_async_client=http)
    return Client(vertexai=False, api_key=key, http_options=options)


GOOGLE = Vendor(
    kind="google",
    extra="google",
    module="google.genai",
    keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    url="https://generativelanguage.googleapis.com",
    make=_client,
)


class _Shared(dict[str, Any]):
    """JSON that nobody changes. The library copies what it is given to the bottom; this it may keep as it is."""

    def __deepcopy__(self, memo: object) -> _Shared:
        return self


@final
class GoogleCore(ApiCore):
    """A Gemini model behind Google's API."""

    vendor: ClassVar[Vendor] = GOOGLE

    class Options(ApiOptions):
        """Its options."""

    async def ask(self, client: Client, request: Request) -> Answer:
        # The library turns contents that it is given as such into its types and back, which takes longer than all else.
        options: Any = {"model": self.model, "contents": ".", "config": {"http_options": {"extra_body": self._body(request)}}}
        if self.options.stream:
            # Read to its end first: Trio wants generators to come to theirs.
            events = [event async for event in await client.aio.models.generate_content_stream(**options)]
        else:
            events = [await client.aio.models.generate_content(**options)]
        answer = Answer()
        for event in events:
            self._read(event, answer)
        return answer

    def _body(self, request: Request) -> dict[str, Any]:
        roles = {"user": "user", "assistant": "model"}
        spoken = [message for message in request.messages if message.text]  # the API takes no empty ones
        settings: dict[str, Any] = {"maxOutputTokens": request.most}
        if self.options.temperature is not None:
            settings["temperature"] = self.options.temperature
        if self.options.top_p is not None:
            settings["topP"] = self.options.top_p
        if request.schema is not None:
            settings |= {"responseMimeType": "application/json", "responseJsonSchema": request.schema}
        body: dict[str, Any] = {
            "contents": [_Shared(role=roles[message.role], parts=[{"text": message.text}]) for message in spoken],
            "generationConfig": settings,
        }
        if request.system:
            body["systemInstruction"] = {"parts": [{"text": request.system}]}
        return body

    def _read(self, event: GenerateContentResponse, answer: Answer) -> None:
        """Take over what an answer, or a piece of one, holds."""
        if (usage := event.usage_metadata) is not None:
            written = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
            answer.usage = used(inputs=usage.prompt_token_count, cached=usage.cached_content_token_count, output=written)
        if event.prompt_feedback is not None and event.prompt_feedback.block_reason:
            raise AgentError(f"refuses the prompt: {event.prompt_feedback.block_reason.value}")
        for candidate in (event.candidates or ())[:1]:
            reason = candidate.finish_reason.value if candidate.finish_reason else None
            if reason in REFUSALS:
                raise AgentError(f"refuses to answer: {reason}")
            for piece in (candidate.content.parts if candidate.content else None) or ():
                if piece.text and not piece.thought:
                    answer.add(piece.text)
            answer.done |= reason is not None
            answer.cut |= reason == "MAX_TOKENS"


@final
class GoogleAgent(ChatAgent):
    """A Gemini model as an agent."""

    class Options(GoogleCore.Options, ChatOptions):
        """The agent's and the model's."""

    def __init__(self, target: str, options: AgentOptions | None = None) -> None:
        settings = options if isinstance(options, self.Options) else self.Options()
        super().__init__(GoogleCore(target, settings), settings, target)
