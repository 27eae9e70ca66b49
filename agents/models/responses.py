"""Chat models behind OpenAI's Responses API, or a server that speaks it (`base_url`), which keeps the conversation.

The server keeps each answer with all that came before it, under an id. A request continues from the id of an earlier answer, which never
changes, so that a conversation can be continued from any of its turns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, final

import trio
from pydantic import ValidationError, model_validator

from longspan.agents.base import AgentError, Message, Usage
from longspan.agents.models.api import ApiCore, ApiOptions, ServerAnswer, dig_value, is_stream, merge_body, parse_events, parse_usage
from longspan.agents.models.chat import ChatOptions, DryChat
from longspan.agents.models.core import ChatMessage, Completion
from longspan.agents.models.openai import OPENAI, find_encoding
from longspan.agents.models.provider import Vendor
from longspan.agents.models.request import Request, ServerState
from longspan.agents.models.stateful import MAX_ID, ServerPoint, StatefulAgent, check_shown
from longspan.agents.models.web import stream_error
from longspan.simulator.base.errors import first_problem
from longspan.simulator.base.tokens import EncodingName

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["ResponsesAgent", "ResponsesCore"]

TAKEN: Final = frozenset("background conversation input instructions max_output_tokens previous_response_id store".split())
"""More fields of a request that users may not set."""

BEFORE: Final = "previous_response_id"
"""The field with the id of the answer that a request continues from."""

SNAPSHOT: Final = "server.json"


@final
class ResponsesCore(ApiCore):
    """A chat model behind the Responses API."""

    vendor: ClassVar[Vendor] = OPENAI

    class Options(ApiOptions):
        """The options of a model behind the Responses API."""

        @model_validator(mode="after")
        def _body_is_free(self) -> Self:
            if taken := sorted(TAKEN & self.extra_body.keys()):
                raise ValueError(f"extra_body: {', '.join(taken)} cannot be set")
            return self

    def encoding(self) -> tuple[EncodingName, float]:
        return find_encoding(self.model) or super().encoding()

    async def ask(self, client: AsyncOpenAI, request: Request) -> ServerAnswer:
        fields = self.body(request)
        stream = fields.pop("stream", False)
        create: Any = client.responses.with_streaming_response.create
        # Pass the finished body and read the raw answer, for the reasons given in `openai.py`.
        async with create(model=self.model, input=[], stream=stream, extra_body=fields) as response:
            body = await response.read()
        answer = ServerAnswer()
        streamed = is_stream(body)
        for event in parse_events(body):
            kind = dig_value(event, "type")
            if kind == "error":
                raise stream_error(event)
            if not streamed or kind in ("response.completed", "response.incomplete", "response.failed"):
                found = dig_value(event, "response") if streamed else event
                self._read(found, answer)
                _check_kept(dig_value(found, BEFORE), request.state, answer.usage)
        return answer

    def body(self, request: Request) -> dict[str, Any]:
        options = self.options
        body: dict[str, Any] = {
            "input": [{"role": message.role, "content": message.text} for message in request.messages],
            "max_output_tokens": request.max_tokens,
            "store": False,
        }
        if request.system:  # with each request, since the API does not carry it over
            body["instructions"] = request.system
        sampling = {"temperature": options.temperature, "top_p": options.top_p}
        body |= {name: value for name, value in sampling.items() if value is not None}
        if options.reasoning_effort is not None:
            body["reasoning"] = {"effort": options.reasoning_effort}
        if request.schema is not None:
            strict = request.schema.get("additionalProperties") is False
            body["text"] = {"format": {"type": "json_schema", "name": "answer", "schema": request.schema, "strict": strict}}
        elif request.json_object:
            body["text"] = {"format": {"type": "json_object"}}
        if options.stream != request.other_stream:
            body["stream"] = True
        return merge_body(request.trim(merge_body(body, options.extra_body)), request.state.fields)

    def _read(self, response: Any, answer: ServerAnswer) -> None:
        """Add the contents of a response."""
        if error := dig_value(response, "error"):
            raise stream_error(error)
        usage, id = dig_value(response, "usage"), dig_value(response, "id")
        answer.id = id if isinstance(id, str) else ""
        cached = dig_value(usage, "input_tokens_details", "cached_tokens")
        answer.usage = parse_usage(inputs=dig_value(usage, "input_tokens"), cached=cached, output=dig_value(usage, "output_tokens"))
        status, reason = dig_value(response, "status"), dig_value(response, "incomplete_details", "reason")
        answer.done = status not in ("failed", "cancelled", "in_progress", "queued")
        answer.truncated = reason == "max_output_tokens"
        if reason == "content_filter":
            answer.refuse("content filter")
        said = False
        for item in dig_value(response, "output") or ():
            kind = dig_value(item, "type")
            answer.called |= kind in ("function_call", "custom_tool_call")
            for part in [*(dig_value(item, "summary") or ()), *(dig_value(item, "content") or ())] if kind == "reasoning" else ():
                answer.think(dig_value(part, "text"))
            for part in (dig_value(item, "content") or ()) if kind == "message" else ():
                if dig_value(item, "phase") == "commentary":  # remarks before the final answer
                    answer.think(dig_value(part, "text"))
                    continue
                said = True
                if refusal := dig_value(part, "refusal"):
                    answer.refuse("the model refused")
                    answer.add(refusal)
                else:
                    answer.add(dig_value(part, "text"))
        if answer.done and not (said or answer.truncated or answer.refusal or answer.called):
            answer.add(None)

    def _cache_key(self, request: Request) -> object:
        return ["responses", super()._cache_key(request)]


def _check_kept(named: object, state: ServerState, usage: Usage | None) -> None:
    """Raise AgentError if an answer shows that the server ignores the id of the answer before.

    It then neither names the id nor counts the conversation, of which only the model's thoughts may be missing.
    """
    before = state.fields.get(BEFORE)
    if before is not None and named != before and usage is not None and 2 * usage.input_tokens < state.tokens:
        raise AgentError(f"ignores {BEFORE}, so that it does not keep the conversation: use openai/MODEL, which sends it")


@final
class ResponsesAgent(StatefulAgent):
    """A chat model behind the Responses API, continued from the id of its last answer.

    Turns that it only reads are sent with the next message.
    """

    core_class = ResponsesCore

    class Options(ResponsesCore.Options, ChatOptions):
        """The options of the agent and the model."""

        @model_validator(mode="after")
        def _server_keeps(self) -> Self:
            check_shown(self)
            return self

    def worst_case(self, message: Message) -> Mapping[str, Usage]:
        """Return the maximum tokens for answering `message`. The provider charges for the whole conversation."""
        usage = super().worst_case(message)["agent"]
        return {"agent": replace(usage, input_tokens=usage.input_tokens + self._point.tokens)}

    def without_model(self) -> DryChat:
        """Return this agent without its model, for estimates, which sends the whole conversation: that is what the provider charges for."""
        dry = super().without_model()
        dry.show_all()
        return dry

    async def mark(self) -> None:
        await super().mark()
        self._marked_point = self._point

    async def rewind(self) -> None:
        await super().rewind()
        self._point = self._marked_point

    async def save(self, folder: Path) -> None:
        await super().save(folder)
        await trio.Path(folder / SNAPSHOT).write_text(self._point.model_dump_json(), "utf-8")

    async def load(self, folder: Path) -> None:
        await super().load(folder)
        path = folder / SNAPSHOT
        try:
            self._point = ServerPoint.model_validate_json(await trio.Path(path).read_bytes())
        except OSError as error:
            raise AgentError(f"{path}: cannot be read: {error.strerror}") from error
        except ValidationError as error:
            raise AgentError(f"{path}: not a snapshot of this kind of agent: {first_problem(error)}") from None

    async def _go_on(self, prompt: list[ChatMessage], trace: dict[str, Any]) -> Completion:
        core, point = self.core, self._point
        assert isinstance(core, ResponsesCore)  # noqa: S101
        fields = {"store": True} | ({BEFORE: point.id} if point.id else {})
        completion = await core.go_on(prompt, ServerState(fields, {}, point.tokens))
        if not 0 < len(completion.id) <= MAX_ID:
            raise AgentError(f"{core.name}: gave an answer without a valid id, from which the conversation could be continued")
        usage = completion.usage
        self._point = ServerPoint(id=completion.id, tokens=usage.input_tokens + usage.output_tokens)
        trace |= self._point.trace
        self._sent = True
        return completion
